"""The commands: wire arguments -> engine verbs -> Outcome. Pure, as the engine is."""
