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

package shipped

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/schemas/builtin"
)

const (
	// Directory of the files, relative to the root of the repository.
	Directory = "provider/schemas/builtin"
	// Pattern matches the files' names.
	Pattern = "*.yaml"
)

// manifest is a ConfigMap or a CRD without the fields that only servers write.
type manifest struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metadata                                      `json:"metadata"`
	Spec            *apiextensionsv1.CustomResourceDefinitionSpec `json:"spec,omitempty"`
}

type metadata struct {
	Name        string            `json:"name"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Files returns the content of the files by name.
func Files(ctx context.Context, config *rest.Config) (map[string][]byte, error) {
	client, err := discovery.NewClient(config, nil)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	files := map[string][]byte{}
	for _, kind := range kinds {
		file, err := kind.file(ctx, client)
		if err != nil {
			return nil, err
		}
		files[builtin.FileName(kind.GroupResource())] = file
	}
	return files, nil
}

func (k kind) file(ctx context.Context, client *discovery.Client) ([]byte, error) {
	crd, err := client.CRDFor(ctx, synchubv1alpha1.ResourceDescriptor{Group: k.Group, Version: k.Version, Resource: k.Resource})
	if err != nil {
		return nil, err
	}
	for i := range crd.Spec.Versions {
		version := &crd.Spec.Versions[i]
		shortenDescriptions(version.Schema.OpenAPIV3Schema, 0)
		for _, field := range k.required {
			if err := require(version.Schema.OpenAPIV3Schema, strings.Split(field, ".")); err != nil {
				return nil, fmt.Errorf("requiring %s of %s: %w", field, k.GroupResource(), err)
			}
		}
		for _, value := range k.defaults {
			if err := setDefault(version.Schema.OpenAPIV3Schema, strings.Split(value.field, "."), value.json); err != nil {
				return nil, fmt.Errorf("giving %s of %s its default: %w", value.field, k.GroupResource(), err)
			}
		}
		version.AdditionalPrinterColumns = k.columns
		if k.warning != "" {
			version.Deprecated, version.DeprecationWarning = true, &k.warning
		}
	}
	definition, err := yaml.Marshal(manifest{TypeMeta: crd.TypeMeta, Metadata: metadata{Name: crd.Name, Annotations: crd.Annotations}, Spec: &crd.Spec})
	if err != nil {
		return nil, fmt.Errorf("encoding the definition of %s: %w", k.GroupResource(), err)
	}
	return append([]byte("# Made by `make schemas`.\n"), definition...), nil
}

// require makes a field and all its parents required.
func require(parent *apiextensionsv1.JSONSchemaProps, path []string) error {
	field, ok := parent.Properties[path[0]]
	if !ok {
		return fmt.Errorf("there is no field %s", path[0])
	}
	if !slices.Contains(parent.Required, path[0]) {
		parent.Required = append(parent.Required, path[0])
	}
	if len(path) == 1 {
		return nil
	}
	defer func() { parent.Properties[path[0]] = field }()
	return require(&field, path[1:])
}

// setDefault sets the default of a field.
func setDefault(parent *apiextensionsv1.JSONSchemaProps, path []string, json string) error {
	field, ok := parent.Properties[path[0]]
	if !ok {
		return fmt.Errorf("there is no field %s", path[0])
	}
	defer func() { parent.Properties[path[0]] = field }()
	if len(path) > 1 {
		return setDefault(&field, path[1:], json)
	}
	field.Default = &apiextensionsv1.JSON{Raw: []byte(json)}
	return nil
}

const (
	// maxDescription is the length of a description in bytes, without the dots that end one that is cut.
	maxDescription = 160
	// describedLevels reach to the fields of a Deployment's containers. With all levels the chart is too large for the Secret in which
	// Helm keeps a release.
	describedLevels = 5
)

// shortenDescriptions leaves the first sentence of the descriptions of the upper levels, for `kubectl explain`.
func shortenDescriptions(schema *apiextensionsv1.JSONSchemaProps, level int) {
	if schema == nil {
		return
	}
	schema.Description = firstSentence(schema.Description)
	if level > describedLevels {
		schema.Description = ""
	}
	for name, property := range schema.Properties {
		shortenDescriptions(&property, level+1)
		schema.Properties[name] = property
	}
	if schema.Items != nil {
		shortenDescriptions(schema.Items.Schema, level)
	}
	if schema.AdditionalProperties != nil {
		shortenDescriptions(schema.AdditionalProperties.Schema, level)
	}
}

// firstSentence returns the first sentence of a text, and of a long one the first words.
func firstSentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for end := 0; ; {
		next := strings.Index(text[end:], ". ")
		if next < 0 {
			break
		}
		end += next + 1
		// The dot of an abbreviation ends no sentence.
		if !slices.ContainsFunc([]string{"i.e.", "e.g.", "etc.", "vs."}, func(short string) bool { return strings.HasSuffix(text[:end], short) }) {
			text = text[:end]
			break
		}
	}
	if len(text) <= maxDescription {
		return text
	}
	return text[:strings.LastIndex(text[:maxDescription], " ")] + "..."
}
