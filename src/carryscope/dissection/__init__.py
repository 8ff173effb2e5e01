"""How a model adds: interventions on its parts, and the findings that come of them."""
