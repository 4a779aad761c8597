"""The engine for MySQL and MariaDB: Django's, which here asks the server twice less for each request."""
