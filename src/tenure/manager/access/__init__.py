"""Access to a manager: roles, the file of tokens, the gate at its port, and the audit."""
