"""Projections of queries and documents into one space: VSM, LSA, CL-LSA, OPCA and S2Net."""
