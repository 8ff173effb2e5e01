"""The certificate: proved accuracy over every question. See docs/certificate.md.

trees -> boxes -> features -> row_tables -> intervals -> functionals -> margins
      -> proof -> subject -> exploring -> counting -> finding -> certify -> checking
"""
