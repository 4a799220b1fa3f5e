"""ssh through paramiko: what a host is configured as, whether it is the right one, and the way in.

paramiko speaks the protocol and nothing more: the configuration, known hosts, jump hosts, the order
of keys and every time limit are decided here, one question per file.
"""
