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

package schemas

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const identityHash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestPublishedResourceValidation(t *testing.T) {
	resource := newValidator(t, "publishedresources.synchub.dev")
	for name, test := range map[string]struct{ spec, field string }{
		"by resource": {spec: `resource: {resource: configmaps}`},
		"by kind":     {spec: `resource: {group: apps, kind: Deployment, version: v1}`},
		"everything": {spec: `
resource: {group: cert-manager.io, resource: certificates, kind: Certificate, version: v1}
api: {source: Schema, schemaFrom: {syncTarget: {cluster: "root:inventory", name: florin}}}
installCRD: true
projection: {group: certs.example.com, version: v1alpha1, kind: Cert, plural: certs, shortNames: [ct]}
naming: {namespace: "{{ .Mailbox }}-{{ .Object.metadata.namespace }}", name: "x-{{ .Object.metadata.name | sha3short }}"}
select: All
filter:
  resource: {matchLabels: {a: b}}
  namespace: {matchExpressions: [{key: a, operator: In, values: [b]}, {key: c, operator: DoesNotExist}]}
  cel: self.spec.replicas > 1
mutation:
  down:
  - delete: {path: "metadata.annotations['example.com/internal']"}
  - set: {path: spec.replicas, value: 3}
  - regex: {path: "spec.template.spec.containers[*].image", pattern: "^docker\\.io/", replacement: "mirror/$1"}
  up:
  - template: {path: "spec.list[0].x", template: "{\"a\":{\"b\":\"{{ .Value }}\"}}"}
  - cel: {path: "status.conditions[?(@.type==\"Ready\")].message", expression: "value + other.spec.x"}
ignoreFields:
- {path: spec.replicas}
- {path: metadata.labels, onCreate: false}
related:
- identifier: secret
  origin: Target
  resource: {version: v1, resource: secrets}
  projection: {kind: CertSecret, resource: certsecrets, group: certs.example.com}
  object: {reference: {path: spec.secretName, regex: {pattern: "^(.*)$", replacement: "$1-tls"}}}
  mutation: {up: [{delete: {path: data.ca}}]}
- identifier: issuers
  origin: Mailbox
  resource: {group: cert-manager.io, version: v1, resource: issuers, identityHash: ` + identityHash + `}
  object: {reference: {path: "spec.issuers[*]", nameField: name, namespaceField: namespace}}
  naming: {name: "{{ .Object.metadata.name }}"}
  mutation: {down: [{set: {path: spec.x, value: {y: [1]}}}]}
  statusReturn: false
  deletionPolicy: Orphan
- identifier: labelled
  origin: Mailbox
  resource: {version: v1, resource: configmaps}
  object: {selector: {matchLabels: {for: "{{ .Primary.metadata.name }}"}}}
  namespace: {selector: {matchExpressions: [{key: team, operator: Exists}]}}
- identifier: templated
  origin: Mailbox
  resource: {version: v1, resource: configmaps}
  object: {template: "{{ .Primary.metadata.name }}-settings"}
  namespace: {reference: {path: spec.targetNamespace}}
- identifier: owned
  origin: Target
  resource: {group: cert-manager.io, version: v1, resource: certificaterequests}
  object: {owner: {controllerOnly: true}}
statusReturn: false
deletion: {policy: Orphan, cascade: true, waitForTarget: true}
replace: true
adoption: KubeStellar
limits: {mailboxObjects: 1, mailboxBytes: 1}
compatibility: Warn`},
		"a claim of another export":           {spec: `{resource: {group: a.io, resource: as, version: v1}, api: {source: Claim, identityHash: ` + identityHash + `}}`},
		"a projected claim of another export": {spec: `{resource: {group: a.io, resource: as, kind: A, version: v1}, projection: {group: b.io, kind: B}, api: {identityHash: ` + identityHash + `}}`},
		"a schema in a ConfigMap":             {spec: `{resource: {group: a.io, resource: as}, api: {schemaFrom: {configMap: {name: a}}}}`},
		"a schema of the host":                {spec: `{resource: {group: a.io, resource: as}, api: {schemaFrom: {hostingCluster: {}}}}`},

		"nothing":                    {spec: `{}`, field: "spec.resource"},
		"neither resource nor kind":  {spec: `resource: {group: apps}`, field: "spec.resource"},
		"a group that is no domain":  {spec: `resource: {group: Apps, kind: A}`, field: "spec.resource.group"},
		"a resource that is a kind":  {spec: `resource: {resource: Deployment}`, field: "spec.resource.resource"},
		"a kind that is a resource":  {spec: `resource: {kind: deployments}`, field: "spec.resource.kind"},
		"a version with a group":     {spec: `resource: {kind: A, version: apps/v1}`, field: "spec.resource.version"},
		"a limit of no objects":      {spec: with(`limits: {mailboxObjects: 0}`), field: "spec.limits.mailboxObjects"},
		"a limit of no bytes":        {spec: with(`limits: {mailboxBytes: 0}`), field: "spec.limits.mailboxBytes"},
		"an unknown selection":       {spec: with(`select: Some`), field: "spec.select"},
		"an unknown adoption":        {spec: with(`adoption: Sometimes`), field: "spec.adoption"},
		"an unknown compatibility":   {spec: with(`compatibility: Lenient`), field: "spec.compatibility"},
		"an unknown source":          {spec: with(`api: {source: Magic}`), field: "spec.api.source"},
		"an unknown deletion policy": {spec: with(`deletion: {policy: Keep}`), field: "spec.deletion.policy"},

		"a claim with a schema":            {spec: with(`api: {source: Claim, schemaFrom: {hostingCluster: {}}}`), field: "spec.api.schemaFrom"},
		"a schema with an identity":        {spec: `{resource: {resource: as, version: v1}, api: {source: Schema, identityHash: ` + identityHash + `}}`, field: "spec.api.identityHash"},
		"both a schema and an identity":    {spec: `{resource: {resource: as, version: v1}, api: {schemaFrom: {hostingCluster: {}}, identityHash: ` + identityHash + `}}`, field: "spec.api.identityHash"},
		"an identity that is none":         {spec: `{resource: {resource: as, version: v1}, api: {identityHash: abc}}`, field: "spec.api.identityHash"},
		"a schema from nowhere":            {spec: with(`api: {schemaFrom: {}}`), field: "spec.api.schemaFrom"},
		"a schema from two places":         {spec: with(`api: {schemaFrom: {hostingCluster: {}, configMap: {name: a}}}`), field: "spec.api.schemaFrom"},
		"a SyncTarget without workspace":   {spec: with(`api: {schemaFrom: {syncTarget: {name: a}}}`), field: "spec.api.schemaFrom.syncTarget.cluster"},
		"a workspace that is a path":       {spec: with(`api: {schemaFrom: {syncTarget: {name: a, cluster: "/clusters/root"}}}`), field: "spec.api.schemaFrom.syncTarget.cluster"},
		"a SyncTarget with a bad name":     {spec: with(`api: {schemaFrom: {syncTarget: {name: A, cluster: root}}}`), field: "spec.api.schemaFrom.syncTarget.name"},
		"a ConfigMap without a name":       {spec: with(`api: {schemaFrom: {configMap: {}}}`), field: "spec.api.schemaFrom.configMap.name"},
		"a ConfigMap with a bad name":      {spec: with(`api: {schemaFrom: {configMap: {name: A}}}`), field: "spec.api.schemaFrom.configMap.name"},
		"a ConfigMap key that is none":     {spec: with(`api: {schemaFrom: {configMap: {name: a, key: "a b"}}}`), field: "spec.api.schemaFrom.configMap.key"},
		"installCRD of a claim":            {spec: with(`installCRD: true`, `api: {source: Claim}`), field: "spec.installCRD"},
		"waitForTarget of a claim":         {spec: with(`deletion: {waitForTarget: true}`, `api: {source: Claim}`), field: "spec.deletion.waitForTarget"},
		"installCRD of a foreign API":      {spec: foreign(`installCRD: true`), field: "spec.installCRD"},
		"waitForTarget of a foreign API":   {spec: foreign(`deletion: {waitForTarget: true}`), field: "spec.deletion.waitForTarget"},
		"a foreign API without a resource": {spec: `{resource: {group: a.io, kind: A, version: v1}, api: {identityHash: ` + identityHash + `}}`, field: "spec.api.identityHash"},
		"a foreign API without a version":  {spec: with(`api: {identityHash: ` + identityHash + `}`), field: "spec.api.identityHash"},
		"a projection of a claim":          {spec: with(`projection: {group: a.io}`, `api: {source: Claim}`), field: "spec.projection"},
		"a projection of an unknown kind":  {spec: with(`projection: {kind: A}`), field: "spec.projection.kind"},
		"a projection of unknown plural":   {spec: `{resource: {kind: A}, projection: {plural: as}}`, field: "spec.projection.plural"},
		"an empty projection":              {spec: with(`projection: {}`), field: "spec.projection"},
		"a projection of every version":    {spec: with(`projection: {version: v2}`), field: "spec.projection.version"},
		"a projected group that is none":   {spec: with(`projection: {group: "a..b"}`), field: "spec.projection.group"},
		"a projected kind that is none":    {spec: `{resource: {kind: A}, projection: {kind: a}}`, field: "spec.projection.kind"},
		"a projected plural that is none":  {spec: with(`projection: {plural: A}`), field: "spec.projection.plural"},
		"a projected version that is none": {spec: `{resource: {kind: A, version: v1}, projection: {version: one}}`, field: "spec.projection.version"},
		"a short name that is none":        {spec: with(`projection: {shortNames: ["A b"]}`), field: "spec.projection.shortNames[0]"},
		"an empty naming":                  {spec: with(`naming: {}`), field: "spec.naming"},
		"a name template left open":        {spec: with(`naming: {name: "a-{{ .Object"}`), field: "spec.naming.name"},
		"a namespace with a dot":           {spec: with(`naming: {namespace: "a.{{ .Mailbox }}"}`), field: "spec.naming.namespace"},
		"a name with a slash":              {spec: with(`naming: {name: "a/{{ .Mailbox }}"}`), field: "spec.naming.name"},
		"an empty filter":                  {spec: with(`filter: {}`), field: "spec.filter"},
		"a filter without values":          {spec: with(`filter: {resource: {matchExpressions: [{key: a, operator: In}]}}`), field: "spec.filter.resource.matchExpressions[0].values"},
		"a filter by an unknown operator":  {spec: with(`filter: {namespace: {matchExpressions: [{key: a, operator: Like}]}}`), field: "spec.filter.namespace.matchExpressions[0].operator"},
		"a filter with values too many":    {spec: with(`filter: {namespace: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}`), field: "spec.filter.namespace.matchExpressions[0].values"},
		"an empty filter expression":       {spec: with(`filter: {cel: ""}`), field: "spec.filter.cel"},

		"an empty mutation":              {spec: with(`mutation: {}`), field: "spec.mutation"},
		"a step that does nothing":       {spec: with(`mutation: {down: [{}]}`), field: "spec.mutation.down[0]"},
		"a step that does two things":    {spec: with(`mutation: {up: [{delete: {path: a}, set: {path: b, value: 1}}]}`), field: "spec.mutation.up[0]"},
		"a step without a path":          {spec: with(`mutation: {down: [{delete: {}}]}`), field: "spec.mutation.down[0].delete.path"},
		"a regex without a path":         {spec: with(`mutation: {down: [{regex: {pattern: a}}]}`), field: "spec.mutation.down[0].regex.path"},
		"a template without a path":      {spec: with(`mutation: {down: [{template: {template: a}}]}`), field: "spec.mutation.down[0].template.path"},
		"an expression without a path":   {spec: with(`mutation: {down: [{cel: {expression: a}}]}`), field: "spec.mutation.down[0].cel.path"},
		"an empty template":              {spec: with(`mutation: {down: [{template: {path: a, template: ""}}]}`), field: "spec.mutation.down[0].template.template"},
		"a step without a value":         {spec: with(`mutation: {down: [{set: {path: a}}]}`), field: "spec.mutation.down[0].set.value"},
		"a path with a leading dot":      {spec: with(`mutation: {down: [{delete: {path: .spec.x}}]}`), field: "spec.mutation.down[0].delete.path"},
		"a path with an open bracket":    {spec: with(`mutation: {down: [{delete: {path: "spec[0"}}]}`), field: "spec.mutation.down[0].delete.path"},
		"a path that recurses":           {spec: with(`mutation: {down: [{delete: {path: spec..x}}]}`), field: "spec.mutation.down[0].delete.path"},
		"a path to the name":             {spec: with(`mutation: {down: [{set: {path: metadata.name, value: x}}]}`), field: "spec.mutation.down[0].set.path"},
		"a path to the name in brackets": {spec: with(`mutation: {down: [{set: {path: "metadata['name']", value: x}}]}`), field: "spec.mutation.down[0].set.path"},
		"a path to all metadata":         {spec: with(`mutation: {down: [{delete: {path: metadata}}]}`), field: "spec.mutation.down[0].delete.path"},
		"a path to the kind":             {spec: with(`mutation: {up: [{regex: {path: kind, pattern: a}}]}`), field: "spec.mutation.up[0].regex.path"},
		"a pattern left open":            {spec: with(`mutation: {up: [{regex: {path: a, pattern: "(a"}}]}`), field: "spec.mutation.up[0].regex.pattern"},
		"an empty pattern":               {spec: with(`mutation: {up: [{regex: {path: a, pattern: ""}}]}`), field: "spec.mutation.up[0].regex.pattern"},
		"a template left open":           {spec: with(`mutation: {up: [{template: {path: a, template: "{{ .Value }"}}]}`), field: "spec.mutation.up[0].template.template"},
		"an empty expression":            {spec: with(`mutation: {up: [{cel: {path: a, expression: ""}}]}`), field: "spec.mutation.up[0].cel.expression"},
		"ignoring the apiVersion":        {spec: with(`ignoreFields: [{path: apiVersion}]`), field: "spec.ignoreFields[0].path"},
		"ignoring no path":               {spec: with(`ignoreFields: [{onCreate: true}]`), field: "spec.ignoreFields[0].path"},
		"ignoring a field twice":         {spec: with(`ignoreFields: [{path: a}, {path: a, onCreate: false}]`), field: "spec.ignoreFields[1]"},

		"related: no identifier":                 {spec: related(`{origin: Target, resource: {version: v1, resource: secrets}, object: {owner: {}}}`), field: "spec.related[0].identifier"},
		"related: a bad identifier":              {spec: related(`{identifier: "A b", origin: Target, resource: {version: v1, resource: secrets}, object: {owner: {}}}`), field: "spec.related[0].identifier"},
		"related: one identifier twice":          {spec: related(entry(`object: {owner: {}}`), entry(`object: {template: a}`)), field: "spec.related[1]"},
		"related: an unknown origin":             {spec: related(`{identifier: a, origin: kcp, resource: {version: v1, resource: secrets}, object: {owner: {}}}`), field: "spec.related[0].origin"},
		"related: no version":                    {spec: related(`{identifier: a, origin: Target, resource: {resource: secrets}, object: {owner: {}}}`), field: "spec.related[0].resource.version"},
		"related: no resource":                   {spec: related(`{identifier: a, origin: Target, resource: {version: v1}, object: {owner: {}}}`), field: "spec.related[0].resource.resource"},
		"related: a bad version":                 {spec: related(`{identifier: a, origin: Target, resource: {version: one, resource: as}, object: {owner: {}}}`), field: "spec.related[0].resource.version"},
		"related: a bad resource":                {spec: related(`{identifier: a, origin: Target, resource: {version: v1, resource: As}, object: {owner: {}}}`), field: "spec.related[0].resource.resource"},
		"related: a bad projected group":         {spec: related(entry(`object: {owner: {}}`, `projection: {group: "*"}`)), field: "spec.related[0].projection.group"},
		"related: a bad projected version":       {spec: related(entry(`object: {owner: {}}`, `projection: {version: one}`)), field: "spec.related[0].projection.version"},
		"related: a bad projected kind":          {spec: related(entry(`object: {owner: {}}`, `projection: {kind: as}`)), field: "spec.related[0].projection.kind"},
		"related: a bad projected resource":      {spec: related(entry(`object: {owner: {}}`, `projection: {resource: As, kind: A}`)), field: "spec.related[0].projection.resource"},
		"related: a bad group":                   {spec: related(`{identifier: a, origin: Target, resource: {group: "*", version: v1, resource: as}, object: {owner: {}}}`), field: "spec.related[0].resource.group"},
		"related: a bad identity":                {spec: related(`{identifier: a, origin: Target, resource: {version: v1, resource: as, identityHash: x}, object: {owner: {}}}`), field: "spec.related[0].resource.identityHash"},
		"related: an empty projection":           {spec: related(entry(`object: {owner: {}}`, `projection: {}`)), field: "spec.related[0].projection"},
		"related: a nameless projection":         {spec: related(entry(`object: {owner: {}}`, `projection: {resource: as}`)), field: "spec.related[0].projection.kind"},
		"related: no object":                     {spec: related(entry(`deletionPolicy: Delete`)), field: "spec.related[0].object"},
		"related: an empty object":               {spec: related(entry(`object: {}`)), field: "spec.related[0].object"},
		"related: two kinds of object":           {spec: related(entry(`object: {owner: {}, template: a}`)), field: "spec.related[0].object"},
		"related: an empty selector":             {spec: related(entry(`object: {selector: {}}`)), field: "spec.related[0].object.selector"},
		"related: a broken selector":             {spec: related(entry(`object: {selector: {matchExpressions: [{key: a, operator: In}]}}`)), field: "spec.related[0].object.selector.matchExpressions[0].values"},
		"related: a path left open":              {spec: related(entry(`object: {reference: {path: "spec["}}`)), field: "spec.related[0].object.reference.path"},
		"related: a name field that is a path":   {spec: related(entry(`object: {reference: {path: a, nameField: a.b}}`)), field: "spec.related[0].object.reference.nameField"},
		"related: a namespace field that is one": {spec: related(entry(`object: {reference: {path: a, nameField: b, namespaceField: a.b}}`)), field: "spec.related[0].object.reference.namespaceField"},
		"related: a namespace from no path":      {spec: related(entry(`object: {owner: {}}`, `namespace: {reference: {}}`)), field: "spec.related[0].namespace.reference.path"},
		"related: a namespace from a bad path":   {spec: related(entry(`object: {owner: {}}`, `namespace: {reference: {path: "a["}}`)), field: "spec.related[0].namespace.reference.path"},
		"related: a namespace with a dot":        {spec: related(entry(`object: {owner: {}}`, `namespace: {template: a.b}`)), field: "spec.related[0].namespace.template"},
		"related: every namespace":               {spec: related(entry(`object: {owner: {}}`, `namespace: {selector: {}}`)), field: "spec.related[0].namespace.selector"},
		"related: a reference to no path": {
			spec: related(entry(`object: {reference: {nameField: name}}`)), field: "spec.related[0].object.reference.path"},
		"related: a namespace without a name": {
			spec: related(entry(`object: {reference: {path: a, namespaceField: namespace}}`)), field: "spec.related[0].object.reference.nameField"},
		"related: a broken pattern": {
			spec: related(entry(`object: {reference: {path: a, regex: {pattern: "["}}}`)), field: "spec.related[0].object.reference.regex.pattern"},
		"related: a template left open": {
			spec: related(entry(`object: {template: "{{ .Primary"}`)), field: "spec.related[0].object.template"},
		"related: an empty namespace": {
			spec: related(entry(`object: {owner: {}}`, `namespace: {}`)), field: "spec.related[0].namespace"},
		"related: two kinds of namespace": {
			spec: related(entry(`object: {owner: {}}`, `namespace: {template: a, reference: {path: b}}`)), field: "spec.related[0].namespace"},
		"related: two namespaces": {
			spec:  related(entry(`object: {reference: {path: a, nameField: name, namespaceField: ns}}`, `namespace: {template: a}`)),
			field: "spec.related[0].namespace"},
		"related: down from the target": {
			spec: related(entry(`object: {owner: {}}`, `mutation: {down: [{delete: {path: a}}]}`)), field: "spec.related[0].mutation.down"},
		"related: status back to the target": {
			spec: related(entry(`object: {owner: {}}`, `statusReturn: true`)), field: "spec.related[0].statusReturn"},
		"related: an unknown deletion policy": {
			spec: related(entry(`object: {owner: {}}`, `deletionPolicy: Keep`)), field: "spec.related[0].deletionPolicy"},
	} {
		t.Run(name, func(t *testing.T) {
			requireOneError(t, resource.create(t, publishedResource(t, test.spec)), test.field)
		})
	}
}

func TestPublishedResourceNeedsASpec(t *testing.T) {
	bare := map[string]any{"apiVersion": "synchub.dev/v1alpha1", "kind": "PublishedResource"}
	requireOneError(t, newValidator(t, "publishedresources.synchub.dev").create(t, bare), "spec")
}

func TestPublishedResourceUpdates(t *testing.T) {
	resource := newValidator(t, "publishedresources.synchub.dev")
	for name, test := range map[string]struct{ old, new, field string }{
		"the version":             {old: `resource: {kind: A, version: v1}`, new: `resource: {kind: A, version: v2}`},
		"not a name":              {old: with(`replace: true`), new: with(`replace: false`)},
		"the group made explicit": {old: `resource: {group: a.io, kind: A}`, new: `{resource: {group: a.io, kind: A}, projection: {group: a.io}}`},
		"the source unchanged":    {old: with(`api: {source: Auto}`), new: with()},

		"the kind":                   {old: `resource: {kind: A}`, new: `resource: {kind: B}`, field: "spec.resource.kind"},
		"the resource":               {old: `resource: {resource: a}`, new: `resource: {resource: b}`, field: "spec.resource.resource"},
		"the kind added":             {old: `resource: {resource: a}`, new: `resource: {resource: a, kind: A}`, field: "spec.resource.kind"},
		"the group behind a project": {old: `{resource: {group: a.io, kind: A}, projection: {group: x.io}}`, new: `{resource: {group: b.io, kind: A}, projection: {group: x.io}}`, field: "spec.resource.group"},
		"the source":                 {old: with(`api: {source: Auto}`), new: with(`api: {source: Schema}`), field: "spec.api.source"},
		"the projected group":        {old: with(`projection: {group: a.io}`), new: with(`projection: {group: b.io}`), field: "spec.projection.group"},
		"the projected group gone":   {old: with(`projection: {group: a.io}`), new: with(), field: "spec.projection.group"},
		"the projected kind":         {old: `{resource: {kind: A}, projection: {kind: B}}`, new: `{resource: {kind: A}, projection: {kind: C}}`, field: "spec.projection.kind"},
		"an identity added":          {old: `resource: {group: a.io, resource: as, version: v1}`, new: `{resource: {group: a.io, resource: as, version: v1}, api: {identityHash: ` + identityHash + `}}`, field: "spec.api.identityHash"},
		"an identity gone":           {old: foreign(), new: `resource: {group: a.io, resource: as, version: v1}`, field: "spec.api.identityHash"},
		"the identity":               {old: foreign(), new: strings.Replace(foreign(), "0123", "3210", 1), field: "spec.api.identityHash"},
		"the projected plural":       {old: with(), new: with(`projection: {plural: as}`), field: "spec.projection.plural"},
	} {
		t.Run(name, func(t *testing.T) {
			requireOneError(t, resource.update(t, publishedResource(t, test.new), publishedResource(t, test.old)), test.field)
		})
	}
}

func TestPublishedResourceDefaults(t *testing.T) {
	resource := publishedResource(t, `
resource: {resource: widgets}
api: {schemaFrom: {configMap: {name: a}}}
deletion: {}
ignoreFields: [{path: a}]
related:
- `+entry(`object: {owner: {}}`))
	newValidator(t, "publishedresources.synchub.dev").create(t, resource)

	requireValue(t, resource, "", "spec", "resource", "group")
	requireValue(t, resource, "Auto", "spec", "api", "source")
	plain := publishedResource(t, with())
	newValidator(t, "publishedresources.synchub.dev").create(t, plain)
	requireValue(t, plain, "Auto", "spec", "api", "source")
	requireValue(t, resource, "crd.yaml", "spec", "api", "schemaFrom", "configMap", "key")
	requireValue(t, resource, "SyncerConfig", "spec", "select")
	requireValue(t, resource, true, "spec", "statusReturn")
	requireValue(t, resource, "Delete", "spec", "deletion", "policy")
	requireValue(t, resource, "Never", "spec", "adoption")
	requireValue(t, resource, "Strict", "spec", "compatibility")
	ignored := resource["spec"].(map[string]any)["ignoreFields"].([]any)[0].(map[string]any)
	requireValue(t, ignored, true, "onCreate")
	first := resource["spec"].(map[string]any)["related"].([]any)[0].(map[string]any)
	requireValue(t, first, "Delete", "deletionPolicy")
	requireValue(t, first, "", "resource", "group")
}

func requireValue(t *testing.T, object map[string]any, wanted any, path ...string) {
	t.Helper()
	value, found, err := unstructured.NestedFieldNoCopy(object, path...)
	if err != nil || !found || !reflect.DeepEqual(value, wanted) {
		t.Errorf("wanted %v at %s, got %v (%v)", wanted, strings.Join(path, "."), value, err)
	}
}

func publishedResource(t *testing.T, spec string) map[string]any {
	t.Helper()
	return object(t, "synchub.dev/v1alpha1", "PublishedResource", spec)
}

// with returns the spec of a minimal PublishedResource with additional fields.
func with(fields ...string) string {
	return strings.Join(append([]string{"resource: {group: example.com, resource: widgets}"}, fields...), "\n")
}

// foreign returns the spec of a PublishedResource for a resource of another export, with additional fields.
func foreign(fields ...string) string {
	return strings.Join(append([]string{"resource: {group: a.io, resource: as, version: v1}", "api: {identityHash: " + identityHash + "}"}, fields...), "\n")
}

// related returns the spec of a minimal PublishedResource with these entries under related.
func related(entries ...string) string {
	return with("related:\n- " + strings.Join(entries, "\n- "))
}

// entry returns an entry under related with origin Target and additional fields.
func entry(fields ...string) string {
	return "{identifier: a, origin: Target, resource: {version: v1, resource: secrets}, " + strings.Join(fields, ", ") + "}"
}
