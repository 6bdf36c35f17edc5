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

package config

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/apis/config/v1alpha1"
)

// Load reads a HubConfiguration from a file. Fields that are not in the file have their defaults.
func Load(file string) (*v1alpha1.HubConfiguration, error) {
	content, err := os.ReadFile(file) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	settings, err := decode(content)
	if err != nil {
		return nil, fmt.Errorf("cannot use the configuration %s: %w", file, err)
	}
	for _, path := range []*string{&settings.KCP.Kubeconfig, &settings.Hosting.Kubeconfig, &settings.Metrics.CertDir, &settings.Tunnel.CertDir} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(filepath.Dir(file), *path)
		}
	}
	return settings, nil
}

// decode decodes a HubConfiguration. The error names all fields that are unknown or have a value of another type.
func decode(content []byte) (*v1alpha1.HubConfiguration, error) {
	fields, err := readDocument(content)
	if err != nil {
		return nil, err
	}
	settings := Defaults()
	if fields["apiVersion"] != settings.APIVersion || fields["kind"] != settings.Kind {
		return nil, fmt.Errorf("it must have apiVersion: %s and kind: %s", settings.APIVersion, settings.Kind)
	}
	if problems := decodeFields(fields, nil, settings); len(problems) > 0 {
		return nil, joinProblems(problems, (*field.Error).Error)
	}
	return settings, nil
}

// readDocument returns the fields of the only YAML or JSON document. The document must not have the same field twice.
func readDocument(content []byte) (map[string]any, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	document, err := documents.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if next, err := documents.Read(); !errors.Is(err, io.EOF) || len(bytes.TrimSpace(next)) > 0 {
		return nil, errors.New("it must be one document, and there are more")
	}
	converted, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		// The parser writes each problem on a separate line.
		return nil, errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	var fields map[string]any
	if err := strictjson.UnmarshalCaseSensitivePreserveInts(converted, &fields); err != nil {
		return nil, fmt.Errorf("it must be a %s: %w", v1alpha1.Kind, err)
	}
	return fields, nil
}

// decodeFields decodes each field alone. It therefore finds all problems, and knows the field even if the decoder's error
// does not name it. above contains the names of the enclosing fields.
func decodeFields(fields map[string]any, above []string, into *v1alpha1.HubConfiguration) (problems field.ErrorList) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		names := append(slices.Clone(above), name)
		if nested, ok := fields[name].(map[string]any); ok && len(nested) > 0 {
			problems = append(problems, decodeFields(nested, names, into)...)
		} else if problem := decodeField(fields[name], names, into); problem != nil {
			problems = append(problems, problem)
		}
	}
	return problems
}

func decodeField(value any, names []string, into *v1alpha1.HubConfiguration) *field.Error {
	document := value
	for _, name := range slices.Backward(names) {
		document = map[string]any{name: document}
	}
	path := field.NewPath(names[0], names[1:]...)
	content, err := json.Marshal(document)
	if err != nil {
		return field.InternalError(path, err)
	}
	unknown, err := strictjson.UnmarshalStrict(content, into)
	switch {
	case len(unknown) > 0:
		return field.Forbidden(path, "there is no such field")
	case err != nil:
		return field.Invalid(path, value, describe(err))
	}
	return nil
}

// describe returns what a value must be.
func describe(err error) string {
	var mismatch *json.UnmarshalTypeError
	if !errors.As(err, &mismatch) {
		return strings.TrimPrefix(err.Error(), "time: ")
	}
	switch mismatch.Type.Kind() {
	case reflect.Bool:
		return "must be true or false"
	case reflect.Int, reflect.Int64:
		return "must be a whole number"
	case reflect.Float32:
		return "must be a number"
	case reflect.Slice:
		return "must be a list"
	case reflect.Struct:
		return "must have fields"
	default:
		return "must be a string"
	}
}
