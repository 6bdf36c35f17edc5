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

package targets

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

const (
	// MaxKubeconfig is how many bytes are parsed at most. A kubeconfig with certificates takes about 6 KiB.
	MaxKubeconfig = 128 << 10
	// maxDepth bounds how deep it may be nested. A kubeconfig needs 6 levels, and its extensions are not read.
	maxDepth = 32
)

// checkYAML refuses what could be much larger than it looks, before anything takes its content in. The parser that
// clientcmd uses writes aliases out: it bounds their number, but not how long the text is that each stands for.
func checkYAML(kubeconfig []byte) error {
	if len(kubeconfig) > MaxKubeconfig {
		return &InvalidKubeconfigError{Field: "its size", Reason: fmt.Sprintf("it has more than %d bytes, of which no cluster needs so many", MaxKubeconfig)}
	}
	// A node of this parser is what was written, with aliases as they are.
	var document yaml.Node
	if err := yaml.Unmarshal(kubeconfig, &document); err != nil {
		return &InvalidKubeconfigError{Field: fieldSyntax, Reason: errMalformed.Error()}
	}
	return checkYAMLNode(&document, 0)
}

func checkYAMLNode(node *yaml.Node, depth int) error {
	switch {
	case node.Anchor != "" || node.Kind == yaml.AliasNode:
		return &InvalidKubeconfigError{Field: fieldSyntax, Reason: "it uses anchors or aliases of YAML; write out what they stand for"}
	case depth > maxDepth:
		return &InvalidKubeconfigError{Field: fieldSyntax, Reason: fmt.Sprintf("it is nested more than %d levels deep", maxDepth)}
	}
	for _, part := range node.Content {
		if err := checkYAMLNode(part, depth+1); err != nil {
			return err
		}
	}
	return nil
}
