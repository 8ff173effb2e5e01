"""The certificate: proved accuracy over every question. See docs/certificate.md.

trees -> boxes -> rounding -> features -> row_tables
      -> compiled_sets -> compiled_bound -> compiled_search, and beside them: reference
      -> proof -> subject -> exploring -> counting -> finding -> certify -> checking
"""
