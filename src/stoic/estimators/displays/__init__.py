"""Pictures of models and targets, as scikit-learn's displays are; one file each."""
