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

package kubeconfig

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

const (
	// MaxSize bounds a kubeconfig, in bytes. One with certificates has about 6 KiB.
	MaxSize = 128 << 10
	// maxDepth bounds the nesting. A kubeconfig needs 6 levels without its extensions.
	maxDepth = 32
)

// checkYAML refuses YAML that could expand, before clientcmd parses it. The parser of clientcmd expands aliases: it bounds
// their number, but not the length of each text.
func checkYAML(kubeconfig []byte) error {
	if len(kubeconfig) > MaxSize {
		return &InvalidError{Field: "its size", Reason: fmt.Sprintf("it has more than %d bytes, which no cluster needs", MaxSize)}
	}
	// A node of this parser keeps aliases as they are.
	var document yaml.Node
	if err := yaml.Unmarshal(kubeconfig, &document); err != nil {
		return &InvalidError{Field: fieldSyntax, Reason: errMalformed.Error()}
	}
	return checkYAMLNode(&document, 0)
}

func checkYAMLNode(node *yaml.Node, depth int) error {
	switch {
	case node.Anchor != "" || node.Kind == yaml.AliasNode:
		return &InvalidError{Field: fieldSyntax, Reason: "it uses anchors or aliases of YAML; write out what they stand for"}
	case depth > maxDepth:
		return &InvalidError{Field: fieldSyntax, Reason: fmt.Sprintf("it is nested more than %d levels deep", maxDepth)}
	}
	for _, part := range node.Content {
		if err := checkYAMLNode(part, depth+1); err != nil {
			return err
		}
	}
	return nil
}
