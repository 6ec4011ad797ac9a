"""Tables, figures and pages that show results, whatever was run."""
