"""The final project: a language model, assembled from the functions of assignments 3 to 8."""
