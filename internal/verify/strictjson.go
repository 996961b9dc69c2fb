package verify

import "sluice.dev/sluice/internal/strictjson"

// maxDepth is deeper than any document nests that is signed.
const maxDepth = 64

// decodeStrictly reads one JSON document that can be understood in one way only.
func decodeStrictly(document []byte, into any) error {
	return strictjson.Rules{Depth: maxDepth}.Unmarshal(document, into)
}
