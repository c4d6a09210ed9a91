"""Who is calling and what they may do: certificates, tokens, RBAC, impersonation, access reviews."""
