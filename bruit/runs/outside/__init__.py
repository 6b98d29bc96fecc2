"""Models for people who have no bruit: coefficients in the units of raw columns, and scikit-learn pipelines."""
