"""Models: encoders and predictors, ours and yours, behind scikit-learn's fit/transform/predict."""
