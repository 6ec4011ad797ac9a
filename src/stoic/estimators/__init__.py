"""scikit-learn estimators for robust learning over groups."""
