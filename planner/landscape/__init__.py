"""The landscape of a service: question, answer, figures and explanation."""
