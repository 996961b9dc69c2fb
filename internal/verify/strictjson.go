package verify

import "sluice.dev/sluice/internal/strictjson"

// decodeStrictly reads one JSON document that can be understood in one way only, and nests no deeper than any that is signed.
func decodeStrictly(document []byte, into any) error {
	return strictjson.Rules{Depth: 64}.Unmarshal(document, into)
}
