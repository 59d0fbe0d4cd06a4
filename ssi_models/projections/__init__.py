"""Projections of queries and documents to one space: VSM, LSA, CL-LSA, OPCA and S2Net."""
