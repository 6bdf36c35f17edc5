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

package structural_test

import (
	"testing"
)

// The OpenAPI document of a kind with a CRD is kept unchanged, except for references to metadata.
func TestDefinitions(t *testing.T) {
	version, notes := convert(t, document(t, `
com.example.v1.Thing:
  x-kubernetes-group-version-kind: [{group: example.com, version: v1, kind: Thing}]
  type: object
  required: [spec]
  properties:
    apiVersion: {type: string, description: d}
    kind: {type: string}
    metadata: {description: Standard., allOf: [{$ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'}]}
    spec:
      type: object
      required: [a]
      x-kubernetes-validations: [{rule: self.a != self.b, message: m}]
      properties:
        a: {type: string, default: x, enum: [x, z], format: k8s-short-name}
        b: {type: string, nullable: true}
        closed: {type: object}
        list: {type: array, x-kubernetes-list-type: set, items: {type: string}}
        pod:
          type: object
          x-kubernetes-embedded-resource: true
          x-kubernetes-preserve-unknown-fields: true
          required: [kind, apiVersion]
          properties:
            apiVersion: {type: string}
            kind: {type: string}
            metadata: {description: Standard., $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'}
        metadata: {type: object, properties: {a: {type: string}}}
    status: {type: object, properties: {phase: {type: string, enum: [A]}}}
`), thing)
	requireNotes(t, notes)
	requireSchema(t, version.Schema.OpenAPIV3Schema, `
type: object
required: [spec]
properties:
  apiVersion: {type: string, description: d}
  kind: {type: string}
  metadata: {type: object}
  spec:
    type: object
    required: [a]
    x-kubernetes-validations: [{rule: self.a != self.b, message: m}]
    properties:
      a: {type: string, default: x, enum: [x, z], format: k8s-short-name}
      b: {type: string, nullable: true}
      closed: {type: object}
      list: {type: array, x-kubernetes-list-type: set, items: {type: string}}
      pod:
        type: object
        x-kubernetes-embedded-resource: true
        x-kubernetes-preserve-unknown-fields: true
        required: [kind, apiVersion]
        properties: {apiVersion: {type: string}, kind: {type: string}, metadata: {type: object}}
      metadata: {type: object, properties: {a: {type: string}}}
  status: {type: object, properties: {phase: {type: string, enum: [A]}}}`)
}

// A Go type without references to other types is not taken for a CRD.
func TestSmallGoTypes(t *testing.T) {
	version, _ := convert(t, goDocument(t, `data: {type: object, additionalProperties: {type: string, format: byte}}`), thing)
	requireSchema(t, version.Schema.OpenAPIV3Schema, `
type: object
properties:
  apiVersion: {type: string}
  kind: {type: string}
  metadata: {type: object}
  data: {type: object, nullable: true, additionalProperties: {type: string, nullable: true}}`)
}
