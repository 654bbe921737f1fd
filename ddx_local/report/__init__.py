"""Reports made from result documents alone: pure functions from documents and case texts to text."""
