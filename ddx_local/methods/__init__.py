"""The methods: each file is one paper's procedure, written as a flow."""
