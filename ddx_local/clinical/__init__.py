"""Clinical knowledge that is code: diagnosis labels, quotes, the specialist pool, similarity."""
