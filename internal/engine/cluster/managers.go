package cluster

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Entry is what the API server records of the fields that one manager has set.
type Entry = metav1.ManagedFieldsEntry

// Inherit gives the manager what those entries hold that its caller chooses, and takes the entries away: an apply of the
// manager then removes what it does not have. Nothing is lost of the rest. It is nil when no entry is chosen.
func Inherit(entries []Entry, manager string, chosen func(Entry) bool) []Entry {
	return shift(entries, manager, chosen, func(theirs *fieldpath.Set) *fieldpath.Set { return theirs })
}

// Reclaim gives the manager the items that entries of the caller's choice have put into lists that the object has, beside
// its items: an apply would else keep both, whatever somebody has made of the item that was there. It is nil when there
// are none. Metadata is left alone, because finalizers and owners are others' to add.
func Reclaim(entries []Entry, manager string, object *unstructured.Unstructured, chosen func(Entry) bool) []Entry {
	updated := func(one Entry) bool { return one.Operation == metav1.ManagedFieldsOperationUpdate && chosen(one) }
	return shift(entries, manager, updated, func(theirs *fieldpath.Set) *fieldpath.Set {
		found := &fieldpath.Set{}
		theirs.Iterate(func(path fieldpath.Path) {
			if isStray(path, object.Object) {
				found.Insert(path.Copy())
			}
		})
		return found
	})
}

// Yield takes fields of the object from the manager's entry, by their JSON pointers, so that an apply without them leaves
// them as they are. It is nil when the manager has none of them.
func Yield(entries []Entry, manager string, object *unstructured.Unstructured, pointers []string) []Entry {
	at := slices.IndexFunc(entries, func(one Entry) bool { return appliedBy(one, manager) })
	if at < 0 {
		return nil
	}
	fields, given := fieldsOf(entries[at]), &fieldpath.Set{}
	fields.Iterate(func(path fieldpath.Path) {
		if slices.ContainsFunc(pointers, func(pointer string) bool { return isUnder(path, Tokens(pointer), object.Object) }) {
			given.Insert(path.Copy())
		}
	})
	if given.Empty() {
		return nil
	}
	left := slices.Clone(entries)
	left[at].FieldsV1 = fieldsV1(fields.Difference(given))
	return left
}

// Tokens are the parts of a JSON pointer, as RFC 6901 has them.
func Tokens(pointer string) []string {
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i := range tokens {
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(tokens[i])
	}
	return tokens
}

// isUnder says that the path is where the tokens lead to in the value, or below that.
func isUnder(path fieldpath.Path, tokens []string, value any) bool {
	if len(path) < len(tokens) {
		return false
	}
	for i, token := range tokens {
		switch in := value.(type) {
		case map[string]any:
			if name := path[i].FieldName; name == nil || *name != token {
				return false
			}
			value = in[token]
		case []any:
			at, err := strconv.Atoi(token)
			if err != nil || at < 0 || at >= len(in) || !isItem(path[i], in[at]) {
				return false
			}
			value = in[at]
		default:
			return false
		}
	}
	return true
}

// ByKubectl says that a person has set the fields, with one of kubectl's commands.
func ByKubectl(entry Entry) bool { return strings.HasPrefix(entry.Manager, "kubectl") }

// shift moves fields from others' entries to the manager's. Those of subresources stay, and what cannot be read.
func shift(entries []Entry, manager string, chosen func(Entry) bool, take func(theirs *fieldpath.Set) *fieldpath.Set) []Entry {
	mine := Entry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1"}
	fields, moved := &fieldpath.Set{}, false
	var kept []Entry
	for _, one := range entries {
		if appliedBy(one, manager) {
			mine = one
			fields = fields.Union(fieldsOf(one))
			continue
		}
		if one.Manager != manager && one.Subresource == "" && chosen(one) {
			theirs := fieldsOf(one)
			if taken := take(theirs); !taken.Empty() {
				fields, theirs, moved = fields.Union(taken), theirs.Difference(taken), true
				mine.APIVersion = cmp.Or(mine.APIVersion, one.APIVersion)
				one.FieldsV1 = fieldsV1(theirs)
			}
			if theirs.Empty() {
				continue
			}
		}
		kept = append(kept, one)
	}
	if !moved {
		return nil
	}
	mine.FieldsV1 = fieldsV1(fields)
	return append(kept, mine)
}

// isStray says that the path leads to an item of a list that the object has without this item.
func isStray(path fieldpath.Path, value any) bool {
	for i, element := range path {
		switch in := value.(type) {
		case map[string]any:
			if element.FieldName == nil || i == 0 && *element.FieldName == "metadata" {
				return false
			}
			value = in[*element.FieldName]
		case []any:
			at := slices.IndexFunc(in, func(item any) bool { return isItem(element, item) })
			if at < 0 {
				return element.Key != nil || element.Value != nil
			}
			value = in[at]
		default:
			return false
		}
	}
	return false
}

// isItem says that a path's element is an item as a manifest has it, which may leave out keys that have defaults.
func isItem(element fieldpath.PathElement, item any) bool {
	if element.Value != nil {
		return fmt.Sprint((*element.Value).Unstructured()) == fmt.Sprint(item)
	}
	if element.Key == nil {
		return false
	}
	fields, _ := item.(map[string]any)
	known := 0
	for _, key := range *element.Key {
		set, found := fields[key.Name]
		if found && fmt.Sprint(set) != fmt.Sprint(key.Value.Unstructured()) {
			return false
		}
		if found {
			known++
		}
	}
	return known > 0
}

func appliedBy(entry Entry, manager string) bool {
	return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// fieldsOf is empty for what cannot be read.
func fieldsOf(entry Entry) *fieldpath.Set {
	fields := &fieldpath.Set{}
	if entry.FieldsV1 == nil || fields.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())) != nil {
		return &fieldpath.Set{}
	}
	return fields
}

func fieldsV1(fields *fieldpath.Set) *metav1.FieldsV1 {
	raw, err := fields.ToJSON()
	if err != nil {
		// A set that was read can be written.
		return nil
	}
	return metav1.NewFieldsV1(string(raw))
}

// Management is what is recorded of an object's owner and managers.
type Management struct {
	// Entries take the place of all that are there.
	Entries []Entry
	// Labels are set beside those that are there, as the manager's.
	Labels  map[string]string
	Manager string
}

// Manage replaces what is recorded of an object's managers, in the one version that is given, and changes nothing else
// but labels. Another version is ErrChanged.
func (c *Client) Manage(ctx context.Context, ref Ref, only Version, set Management) (Applied, error) {
	metadata := map[string]any{"uid": only.UID, "resourceVersion": only.ResourceVersion, "managedFields": set.Entries}
	if len(set.Labels) > 0 {
		metadata["labels"] = set.Labels
	}
	answer, err := c.patchMetadata(ctx, "patch", ref, metadata, set.Manager)
	if err != nil {
		return Applied{}, err
	}
	return Applied{Seen: See(answer), Made: MadeBy(answer, set.Manager)}, nil
}

// patchMetadata merges fields into an object's metadata.
func (c *Client) patchMetadata(ctx context.Context, verb string, ref Ref, metadata map[string]any, manager string) (*metav1.PartialObjectMetadata, error) {
	segments, err := c.segments(verb, ref)
	if err != nil {
		return nil, err
	}
	if c.foresight != nil {
		only := Version{}
		only.UID, _ = metadata["uid"].(types.UID)
		only.ResourceVersion, _ = metadata["resourceVersion"].(string)
		return c.foreseeChange(ctx, verb, ref, only)
	}
	request := c.write(c.rest.Patch(types.MergePatchType)).AbsPath(segments...)
	if manager != "" {
		request.Param("fieldManager", manager)
	}
	answer, _, err := c.send(ctx, verb, ref, request, map[string]any{"metadata": metadata})
	return answer, err
}
