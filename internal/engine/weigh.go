package engine

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// weigh estimates what objects take in memory, in bytes.
func weigh(objects []*unstructured.Unstructured) int64 {
	var sum int64
	for _, o := range objects {
		sum += weighValue(o.Object)
	}
	return sum
}

func weighValue(value any) int64 {
	const word = 16 // of an interface, a string or a header of a collection
	sum := int64(word)
	switch v := value.(type) {
	case string:
		sum += int64(len(v))
	case []any:
		for _, item := range v {
			sum += weighValue(item)
		}
	case map[string]any:
		sum += 3 * word
		for name, item := range v {
			sum += 2*word + int64(len(name)) + weighValue(item)
		}
	}
	return sum
}
