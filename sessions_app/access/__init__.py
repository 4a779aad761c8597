"""Who may do what over the API: keys, scopes, rates."""
