"""Who may do what with a manager: roles, the file of tokens, the gate at its port, the audit."""
