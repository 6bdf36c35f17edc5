/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package transform

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// IgnoredField is a field that the hub does not apply, because the target owns it.
type IgnoredField struct {
	Path fieldpath.Path
	// OnCreate is true if the hub sets the field when it creates the object.
	OnCreate bool
}

// ParseIgnored parses the ignored fields that a user lists in an entry of a config or on an object. The hub sets them when it creates an
// object. The error names the first invalid path.
func ParseIgnored[T ~string](texts []T) ([]IgnoredField, error) {
	if len(texts) > edgev2alpha1.MaxIgnoreFields {
		return nil, fmt.Errorf("%d paths, at most %d are allowed", len(texts), edgev2alpha1.MaxIgnoreFields)
	}
	var ignored []IgnoredField
	for _, text := range texts {
		if len(text) > maxIgnoredLength {
			return nil, fmt.Errorf("a path of %d bytes, at most %d are allowed", len(text), maxIgnoredLength)
		}
		path, err := fieldpath.Parse(string(text))
		if err == nil {
			err = mutation.CheckPath(path)
		}
		if err != nil {
			return nil, err
		}
		ignored = append(ignored, IgnoredField{Path: path, OnCreate: true})
	}
	return ignored, nil
}

// maxIgnoredLength is the maximum length of a path that a user ignores, as of a v2alpha1.IgnoredPath.
const maxIgnoredLength = 256

// removeIgnored removes the ignored fields from the content. It returns the content for a create; nil if it is the same.
func removeIgnored(content map[string]any, ignored []IgnoredField) (first map[string]any) {
	if len(ignored) == 0 {
		return nil
	}
	whole := (&unstructured.Unstructured{Object: content}).DeepCopy().Object
	differs := false
	for _, field := range ignored {
		if field.Path.Delete(content) && field.OnCreate {
			differs = true
		}
		if !field.OnCreate {
			field.Path.Delete(whole)
		}
	}
	if !differs {
		return nil
	}
	return whole
}

// formatIgnored returns the fields in the form of a mark.
func formatIgnored(ignored []IgnoredField) string {
	paths := make([]string, 0, len(ignored))
	for _, field := range ignored {
		paths = append(paths, field.Path.String())
	}
	return strings.Join(paths, ignoredSeparator)
}

// ignoredSeparator separates paths. A path with a line break cannot be parsed again, which costs one write.
const ignoredSeparator = "\n"

// IgnoredAtMark returns the fields that were ignored when the mark was written; ok is false if the mark cannot be parsed.
func IgnoredAtMark(mark ownership.Mark) (ignored []IgnoredField, ok bool) {
	if mark.Ignored == "" {
		return nil, true
	}
	for text := range strings.SplitSeq(mark.Ignored, ignoredSeparator) {
		parsed, err := fieldpath.Parse(text)
		if err != nil {
			return nil, false
		}
		ignored = append(ignored, IgnoredField{Path: parsed, OnCreate: true})
	}
	return ignored, true
}

// UnionIgnored returns the fields of both lists. If both have a path, the field of the first list counts.
func UnionIgnored(first, second []IgnoredField) []IgnoredField {
	all := append([]IgnoredField(nil), first...)
	known := map[string]bool{}
	for _, field := range first {
		known[field.Path.String()] = true
	}
	for _, field := range second {
		if path := field.Path.String(); !known[path] {
			known[path] = true
			all = append(all, field)
		}
	}
	return all
}
