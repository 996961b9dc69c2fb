package function

import "slices"

// wantsText tells whether Kubernetes takes nothing but a string in the field, so that a number in it has to be quoted.
// It goes by names that mean the same everywhere; for what is particular to a kind the author writes the quotes.
func wantsText(o *object, path []string) bool {
	last := len(path) - 1
	above := func(back int) string {
		if last < back {
			return ""
		}
		return path[last-back]
	}
	switch above(1) {
	case "labels", "annotations":
		return above(2) == "metadata"
	case "matchLabels", "nodeSelector":
		return true
	case "selector":
		return o.is("", "Service") || o.is("", "ReplicationController")
	case "data":
		return last == 1 && (o.is("", "ConfigMap") || o.is("", "Secret"))
	case "stringData":
		return last == 1 && o.is("", "Secret")
	case "args", "command":
		return inContainer(path)
	case "metadata":
		return slices.Contains([]string{"name", "namespace", "generateName"}, path[last])
	}
	switch path[last] {
	case "value", "name":
		return above(2) == "env" && inContainer(path)
	case "image":
		return inContainer(path)
	}
	return false
}

func inContainer(path []string) bool {
	return slices.ContainsFunc(path, func(part string) bool {
		return part == "containers" || part == "initContainers" || part == "ephemeralContainers"
	})
}
