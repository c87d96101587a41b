"""On the machine: the wire, devices made of software, the supervised loop, and the paper's real-world protocol."""
