"""The exercises of assignment 11: does a model do what it should?"""
