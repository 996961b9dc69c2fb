package git

// ValidateURL tells whether the URL is one that this package fetches from, without asking anybody. Its error is
// ErrURL and says what is wrong; it does not repeat the URL.
func ValidateURL(raw string) error {
	_, err := parseEndpoint(raw)
	return err
}
