"""What every JSON door of the product shares: reading a body, the field types of the contracts, strict serializers."""
