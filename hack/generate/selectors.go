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

package main

import (
	"bytes"
	"fmt"

	"sigs.k8s.io/yaml"
)

// Label keys and values as the API server accepts them on objects.
const (
	maxLabelKey   = 317
	maxLabelValue = 63
	labelKey      = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	labelValue    = `^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
)

// maxRequirements bounds the requirements of one selector, so that the CEL rules below stay within the cost limits of
// API servers wherever a selector is.
const maxRequirements = 64

// restrictSelectors makes the schema of a definition refuse label selectors that no API server evaluates. The Go types
// of Kubernetes have no markers for this.
func restrictSelectors(crd []byte) ([]byte, error) {
	var content map[string]any
	if err := yaml.Unmarshal(crd, &content); err != nil {
		return nil, err
	}
	walkSchemas(content, func(schema map[string]any) {
		properties, _ := schema["properties"].(map[string]any)
		// The scope selector of a ResourceQuota has requirements without a key.
		if list, ok := properties["matchExpressions"].(map[string]any); ok && properties["matchLabels"] != nil {
			restrictRequirements(list)
		}
		if labels, ok := properties["matchLabels"].(map[string]any); ok && isLabelSelector(schema) {
			restrictValue(labels["additionalProperties"].(map[string]any))
		}
	})
	restricted, err := yaml.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encoding the schema with its selectors restricted: %w", err)
	}
	return append([]byte("---\n"), bytes.TrimPrefix(restricted, []byte("---\n"))...), nil
}

// isLabelSelector reports whether the schema is metav1.LabelSelector. Other selectors may have templates as values.
func isLabelSelector(schema map[string]any) bool {
	return schema["x-kubernetes-map-type"] == "atomic"
}

// restrictRequirements uses CEL for values: an anyOf of OpenAPI would report the operator of the wrong alternative.
func restrictRequirements(list map[string]any) {
	if list["maxItems"] == nil {
		list["maxItems"] = maxRequirements
	}
	requirement := list["items"].(map[string]any)
	properties := requirement["properties"].(map[string]any)
	key := properties["key"].(map[string]any)
	key["maxLength"], key["pattern"] = maxLabelKey, labelKey
	properties["operator"].(map[string]any)["enum"] = []any{"In", "NotIn", "Exists", "DoesNotExist"}
	restrictValue(properties["values"].(map[string]any)["items"].(map[string]any))
	// In and NotIn are the operators that end with In. Comparing with a list would cost too much in an EdgePlacement.
	requirement["x-kubernetes-validations"] = []any{map[string]any{
		"rule":      "self.operator.endsWith('In') == (has(self.values) && size(self.values) > 0)",
		"message":   "the operators In and NotIn need values, Exists and DoesNotExist take none",
		"fieldPath": ".values",
	}}
}

func restrictValue(value map[string]any) {
	value["maxLength"], value["pattern"] = maxLabelValue, labelValue
}

// walkSchemas calls the function with each object below the value.
func walkSchemas(value any, visit func(map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		visit(value)
		for _, child := range value {
			walkSchemas(child, visit)
		}
	case []any:
		for _, child := range value {
			walkSchemas(child, visit)
		}
	}
}
