"""Durability: the effects of write commands, as bytes that can be kept and applied again."""
