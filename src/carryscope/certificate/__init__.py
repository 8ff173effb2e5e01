"""The certificate: proved accuracy over every question. See docs/certificate.md.

trees -> boxes -> features -> row_tables -> intervals -> margins -> exploring
      -> proof -> counting -> workers -> certify -> checking
"""
