"""Order per key for programs that follow the master-consumers pattern: the coordinator, and a delegated consumer.

The order itself is kept by the steps of client/lane_steps.py, each of which is one atomic step on the server. What is
here decides nothing about order: any number of coordinators may run, be killed and started again.
"""
