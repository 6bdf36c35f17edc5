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

package crd_test

// rich is a CRD that uses every feature of CRDs.
const rich = `
metadata: {name: engines.rich.example.org}
spec:
  group: rich.example.org
  scope: Namespaced
  names: {plural: engines, kind: Engine, shortNames: [en], categories: [all]}
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://localhost/convert"}}}
  versions:
  - name: v1alpha1
    served: false
    storage: false
    deprecated: true
    deprecationWarning: use v1
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size, priority: 0}]
    selectableFields: [{jsonPath: .spec.mode}]
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            default: {size: 1.0, mode: a}
            nullable: false
            x-kubernetes-validations: [{rule: "self.size >= 0", message: must not be negative, reason: FieldValueInvalid, fieldPath: .size}]
            properties:
              size: {type: integer, minimum: 0, maximum: 1e3, default: 1}
              mode: {type: string, enum: [a, b], example: a}
              ratio: {type: number, multipleOf: 0.5, default: 2.50}
              port: {x-kubernetes-int-or-string: true, default: http}
              mixed: {anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true, pattern: "^[0-9]+$"}
              labels: {type: object, additionalProperties: {type: string}, maxProperties: 8}
              free: {type: object, additionalProperties: true}
              raw: {type: object, x-kubernetes-preserve-unknown-fields: true, x-kubernetes-embedded-resource: true}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, x-kubernetes-map-type: atomic, required: [name], properties: {name: {type: string, format: dns1123label}}}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}, uniqueItems: false}
              either: {type: object, properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]}, {required: [b]}], not: {required: [c]}}
          status: {type: object, properties: {size: {type: integer}}}
`
