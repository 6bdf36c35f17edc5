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
	"strings"
	"testing"
)

func TestSyncTargetValidation(t *testing.T) {
	target := newValidator(t, "synctargets.edge.kubestellar.io")
	for name, test := range map[string]struct{ spec, field string }{
		"empty": {spec: `{}`},
		"everything": {spec: `
unschedulable: true
evictAfter: "2026-01-02T03:04:05Z"
supportedAPIExports: [{path: "root:compute", export: kubernetes}]
cells: {region: north}
kubeconfigSecretRef: {namespace: creds, name: florin, key: config}
deletionPolicy: Delete
suspend: true
limits: {qps: 100, burst: 200}
mailboxAccess:
- clusterRole: cluster-admin
  subjects:
  - {kind: User, name: anna}
  - {kind: ServiceAccount, namespace: ci, name: deployer}`},

		"an unknown deletion policy":      {spec: `deletionPolicy: Keep`, field: "spec.deletionPolicy"},
		"a Secret without a name":         {spec: `kubeconfigSecretRef: {}`, field: "spec.kubeconfigSecretRef.name"},
		"a Secret name that is illegal":   {spec: `kubeconfigSecretRef: {name: "Florin!"}`, field: "spec.kubeconfigSecretRef.name"},
		"a Secret namespace that is none": {spec: `kubeconfigSecretRef: {name: a, namespace: "a.b"}`, field: "spec.kubeconfigSecretRef.namespace"},
		"a Secret key that is none":       {spec: `kubeconfigSecretRef: {name: a, key: "a/b"}`, field: "spec.kubeconfigSecretRef.key"},
		"a burst below the rate":          {spec: `limits: {qps: 10, burst: 5}`, field: "spec.limits.burst"},
		"no requests at all":              {spec: `limits: {qps: 0}`, field: "spec.limits.qps"},
		"no burst at all":                 {spec: `limits: {burst: 0}`, field: "spec.limits.burst"},
		"access to nothing":               {spec: `mailboxAccess: [{subjects: [{kind: User, name: u}]}]`, field: "spec.mailboxAccess[0].clusterRole"},
		"access without subjects":         {spec: `mailboxAccess: [{clusterRole: view, subjects: []}]`, field: "spec.mailboxAccess[0].subjects"},
		"access for an unknown kind":      {spec: `mailboxAccess: [{clusterRole: view, subjects: [{kind: Robot, name: r}]}]`, field: "spec.mailboxAccess[0].subjects"},
		"a ServiceAccount from nowhere":   {spec: `mailboxAccess: [{clusterRole: view, subjects: [{kind: ServiceAccount, name: r}]}]`, field: "spec.mailboxAccess[0].subjects"},
		"a user from a namespace":         {spec: `mailboxAccess: [{clusterRole: view, subjects: [{kind: User, name: u, namespace: team}]}]`, field: "spec.mailboxAccess[0].subjects"},
		"a role twice":                    {spec: `mailboxAccess: [{clusterRole: view, subjects: [{kind: User, name: u}]}, {clusterRole: view, subjects: [{kind: User, name: v}]}]`, field: "spec.mailboxAccess[1]"},
		"a role name that is no name":     {spec: `mailboxAccess: [{clusterRole: "a/b", subjects: [{kind: User, name: u}]}]`, field: "spec.mailboxAccess[0].clusterRole"},
		"a reference to no export":        {spec: `supportedAPIExports: [{path: "root:compute"}]`, field: "spec.supportedAPIExports[0].export"},
	} {
		t.Run(name, func(t *testing.T) {
			requireOneError(t, target.create(t, object(t, "edge.kubestellar.io/v2alpha1", "SyncTarget", test.spec)), test.field)
		})
	}
}

func TestSyncerConfigValidation(t *testing.T) {
	config := newValidator(t, "syncerconfigs.edge.kubestellar.io")
	for name, test := range map[string]struct{ spec, field string }{
		"empty": {spec: `{}`},
		"every addition": {spec: `
namespaceScope:
  namespaces: ["*"]
  resources: [{resource: configmaps, labelSelector: {matchLabels: {a: b}}, annotations: {c: d}}]
namespacedObjects:
- {group: apps, resource: deployments, apiVersion: v1, labelSelector: {}, objectsByNamespace: [{namespace: "*", names: ["*"]}]}
clusterScope:
- {resource: "*", apiVersion: v1, objects: ["system:node"], annotations: {c: d}}
upsync: [{resources: ["*"], names: ["*"], labelSelector: {matchExpressions: [{key: a, operator: Exists}]}}]
statusReturn: false
deletionPolicy: Orphan
suspend: true
conversions:
- {upstream: {kind: Policy, group: a.example.com, name: "*"}, downstream: {kind: Policy, group: b.example.com, name: "*"}}
- {upstream: {kind: ConfigMap, version: v1, name: one}, downstream: {kind: ConfigMap, version: v1, name: two}}`},

		"a subresource":                       {spec: `clusterScope: [{resource: nodes/status}]`, field: "spec.clusterScope[0].resource"},
		"no resource":                         {spec: `clusterScope: [{group: apps}]`, field: "spec.clusterScope[0].resource"},
		"a group that is no domain":           {spec: `namespacedObjects: [{group: "apps/", resource: deployments}]`, field: "spec.namespacedObjects[0].group"},
		"a version with a group":              {spec: `namespaceScope: {resources: [{resource: deployments, apiVersion: apps/v1}]}`, field: "spec.namespaceScope.resources[0].apiVersion"},
		"a version of an object with a group": {spec: `namespacedObjects: [{resource: secrets, apiVersion: /v1}]`, field: "spec.namespacedObjects[0].apiVersion"},
		"a version of a cluster with a group": {spec: `clusterScope: [{resource: nodes, apiVersion: /v1}]`, field: "spec.clusterScope[0].apiVersion"},
		"a name up with a slash":              {spec: `upsync: [{resources: [pods], names: [a/b]}]`, field: "spec.upsync[0].names[0]"},
		"an object namespace that is none":    {spec: `namespacedObjects: [{resource: secrets, objectsByNamespace: [{namespace: A}]}]`, field: "spec.namespacedObjects[0].objectsByNamespace[0].namespace"},
		"a namespace pattern":                 {spec: `namespaceScope: {namespaces: ["team-*"]}`, field: "spec.namespaceScope.namespaces[0]"},
		"a namespace missing":                 {spec: `namespacedObjects: [{resource: secrets, objectsByNamespace: [{names: [a]}]}]`, field: "spec.namespacedObjects[0].objectsByNamespace[0].namespace"},
		"a name with a slash":                 {spec: `namespacedObjects: [{resource: secrets, objectsByNamespace: [{namespace: a, names: [b/c]}]}]`, field: "spec.namespacedObjects[0].objectsByNamespace[0].names[0]"},
		"an object with an empty name":        {spec: `clusterScope: [{resource: namespaces, objects: [""]}]`, field: "spec.clusterScope[0].objects[0]"},
		"no resources up":                     {spec: `upsync: [{names: ["*"]}]`, field: "spec.upsync[0].resources"},
		"a subresource up":                    {spec: `upsync: [{resources: [pods/log]}]`, field: "spec.upsync[0].resources[0]"},
		"a group up that is no domain":        {spec: `upsync: [{apiGroup: "A", resources: [pods]}]`, field: "spec.upsync[0].apiGroup"},
		"a namespace up that is none":         {spec: `upsync: [{resources: [pods], namespaces: [A]}]`, field: "spec.upsync[0].namespaces[0]"},
		"an unknown deletion policy":          {spec: `deletionPolicy: Keep`, field: "spec.deletionPolicy"},
		"a conversion from nothing":           {spec: `conversions: [{downstream: {kind: A}}]`, field: "spec.conversions[0]"},
		"a conversion to nothing":             {spec: `conversions: [{upstream: {kind: A}}]`, field: "spec.conversions[0]"},
		"a conversion of many to one":         {spec: `conversions: [{upstream: {kind: A, name: "*"}, downstream: {kind: B, name: b}}]`, field: "spec.conversions[0].downstream.name"},
		"a conversion of unnamed to one":      {spec: `conversions: [{upstream: {kind: A}, downstream: {kind: B, name: b}}]`, field: "spec.conversions[0].downstream.name"},
		"an operator in lower case":           {spec: `upsync: [{resources: [pods], labelSelector: {matchExpressions: [{key: a, operator: exists}]}}]`, field: "spec.upsync[0].labelSelector.matchExpressions[0].operator"},
		"a selector that is not an object":    {spec: `upsync: [{resources: [pods], labelSelector: "a=b"}]`, field: "spec.upsync[0].labelSelector"},
	} {
		t.Run(name, func(t *testing.T) {
			requireOneError(t, config.create(t, object(t, "edge.kubestellar.io/v2alpha1", "SyncerConfig", test.spec)), test.field)
		})
	}
}

func TestEdgeSyncConfigValidation(t *testing.T) {
	config := newValidator(t, "edgesyncconfigs.edge.kubestellar.io")
	for name, test := range map[string]struct{ spec, field string }{
		"empty":                       {spec: `{}`},
		"a kind with a space":         {spec: `downSyncedResources: [{kind: "Config Map"}]`, field: "spec.downSyncedResources[0].kind"},
		"a group that is no domain":   {spec: `upSyncedResources: [{kind: A, group: "x/y"}]`, field: "spec.upSyncedResources[0].group"},
		"a version with a group":      {spec: `upSyncedResources: [{kind: A, version: "x/v1"}]`, field: "spec.upSyncedResources[0].version"},
		"a name with a slash":         {spec: `upSyncedResources: [{kind: A, name: "x/y"}]`, field: "spec.upSyncedResources[0].name"},
		"a namespace that is none":    {spec: `upSyncedResources: [{kind: A, namespace: "X"}]`, field: "spec.upSyncedResources[0].namespace"},
		"a conversion of many to one": {spec: `conversions: [{upstream: {kind: A, name: "*"}, downstream: {kind: B, name: b}}]`, field: "spec.conversions[0].downstream.name"},
	} {
		t.Run(name, func(t *testing.T) {
			requireOneError(t, config.create(t, object(t, "edge.kubestellar.io/v2alpha1", "EdgeSyncConfig", test.spec)), test.field)
		})
	}
}

func TestEdgePlacementValidation(t *testing.T) {
	placement := newValidator(t, "edgeplacements.edge.kubestellar.io")
	const first = "spec.downsync[0]"
	for name, test := range map[string]struct{ spec, field string }{
		"empty": {spec: `{}`},
		"everything": {spec: `
locationSelectors: [{matchLabels: {env: prod}}, {}]
inventoryWorkspaces: ["root:clusters", "root:teams:web"]
downsync:
- {apiGroup: apps, resources: [deployments], namespaces: [shop], namespaceSelectors: [{matchLabels: {a: b}}], objectNames: [till], labelSelectors: [{matchLabels: {c: d}}]}
wantSingletonReportedState: true
upsync: [{apiGroup: reports.example.org, resources: ["*"], namespaces: ["*"], names: ["*"]}]
deletionPolicy: Orphan`},

		// Each criterion alone is enough.
		"a group":                        {spec: `downsync: [{apiGroup: apps}]`},
		"the core group":                 {spec: `downsync: [{apiGroup: ""}]`},
		"resources":                      {spec: `downsync: [{resources: [configmaps, secrets]}]`},
		"namespaces":                     {spec: `downsync: [{namespaces: [shop]}]`},
		"namespaces by labels":           {spec: `downsync: [{namespaceSelectors: [{matchLabels: {a: b}}]}]`},
		"namespaces by expressions":      {spec: `downsync: [{namespaceSelectors: [{matchExpressions: [{key: a, operator: Exists}]}]}]`},
		"names":                          {spec: `downsync: [{objectNames: [till]}]`},
		"labels":                         {spec: `downsync: [{labelSelectors: [{matchLabels: {a: b}}]}]`},
		"expressions":                    {spec: `downsync: [{labelSelectors: [{matchExpressions: [{key: a, operator: Exists}]}]}]`},
		"one criterion among wildcards":  {spec: `downsync: [{apiGroup: "", resources: ["*"], namespaces: ["*"], namespaceSelectors: [{}], objectNames: ["*"], labelSelectors: [{}]}]`},
		"labels among empty lists":       {spec: `downsync: [{resources: [], namespaces: [], namespaceSelectors: [], objectNames: [], labelSelectors: [{matchLabels: {a: b}}]}]`},
		"no test":                        {spec: `downsync: []`},
		"no criterion":                   {spec: `downsync: [{}]`, field: first},
		"no group":                       {spec: `downsync: [{apiGroup: null}]`, field: first},
		"no resources":                   {spec: `downsync: [{resources: []}]`, field: first},
		"all resources":                  {spec: `downsync: [{resources: ["*"]}]`, field: first},
		"all resources beside one":       {spec: `downsync: [{resources: [configmaps, "*"]}]`, field: first},
		"all namespaces":                 {spec: `downsync: [{namespaces: ["*"]}]`, field: first},
		"all namespaces beside one":      {spec: `downsync: [{namespaces: [shop, "*"]}]`, field: first},
		"no namespaces":                  {spec: `downsync: [{namespaces: []}]`, field: first},
		"all names":                      {spec: `downsync: [{objectNames: ["*"]}]`, field: first},
		"all names beside one":           {spec: `downsync: [{objectNames: [till, "*"]}]`, field: first},
		"no names":                       {spec: `downsync: [{objectNames: []}]`, field: first},
		"any labels":                     {spec: `downsync: [{labelSelectors: [{}]}]`, field: first},
		"any labels beside some":         {spec: `downsync: [{labelSelectors: [{matchLabels: {a: b}}, {}]}]`, field: first},
		"labels without a label":         {spec: `downsync: [{labelSelectors: [{matchLabels: {}, matchExpressions: []}]}]`, field: first},
		"no labels":                      {spec: `downsync: [{labelSelectors: []}]`, field: first},
		"any namespace's labels":         {spec: `downsync: [{namespaceSelectors: [{}]}]`, field: first},
		"any namespace beside some":      {spec: `downsync: [{namespaceSelectors: [{}, {matchLabels: {a: b}}]}]`, field: first},
		"namespaces without a label":     {spec: `downsync: [{namespaceSelectors: [{matchLabels: {}}]}]`, field: first},
		"no namespace's labels":          {spec: `downsync: [{namespaceSelectors: []}]`, field: first},
		"all wildcards":                  {spec: `downsync: [{resources: ["*"], namespaces: ["*"], namespaceSelectors: [{}], objectNames: ["*"], labelSelectors: [{}]}]`, field: first},
		"no criterion beside a good one": {spec: `downsync: [{apiGroup: apps}, {}]`, field: "spec.downsync[1]"},

		"a group that is no domain":      {spec: `downsync: [{apiGroup: "apps/v1"}]`, field: first + ".apiGroup"},
		"a subresource":                  {spec: `downsync: [{resources: [deployments/status]}]`, field: first + ".resources[0]"},
		"a namespace pattern":            {spec: `downsync: [{namespaces: ["team-*"]}]`, field: first + ".namespaces[0]"},
		"an empty name":                  {spec: `downsync: [{objectNames: [""]}]`, field: first + ".objectNames[0]"},
		"a name with a slash":            {spec: `downsync: [{objectNames: [apps/till]}]`, field: first + ".objectNames[0]"},
		"a label value with a space":     {spec: `downsync: [{labelSelectors: [{matchLabels: {a: "b c"}}]}]`, field: first + ".labelSelectors[0].matchLabels.a"},
		"a selector without values":      {spec: `locationSelectors: [{matchExpressions: [{key: a, operator: NotIn}]}]`, field: "spec.locationSelectors[0].matchExpressions[0].values"},
		"a name of 254 characters":       {spec: `downsync: [{objectNames: [` + strings.Repeat("a", 254) + `]}]`, field: first + ".objectNames[0]"},
		"children as inventories":        {spec: `inventoryWorkspaces: ["root:teams:*"]`, field: "spec.inventoryWorkspaces[0]"},
		"a path that ends with a colon":  {spec: `inventoryWorkspaces: ["root:"]`, field: "spec.inventoryWorkspaces[0]"},
		"an unknown deletion policy":     {spec: `deletionPolicy: Keep`, field: "spec.deletionPolicy"},
		"no resources up":                {spec: `upsync: [{names: ["*"]}]`, field: "spec.upsync[0].resources"},
		"a selector that is no selector": {spec: `locationSelectors: ["env=prod"]`, field: "spec.locationSelectors[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			requireOneError(t, placement.create(t, object(t, "edge.kubestellar.io/v2alpha1", "EdgePlacement", test.spec)), test.field)
		})
	}
}

func TestLocationValidation(t *testing.T) {
	location := newValidator(t, "locations.edge.kubestellar.io")
	for name, test := range map[string]struct{ spec, field string }{
		"empty": {spec: `{}`},
		"everything": {spec: `
resource: {group: edge.kubestellar.io, version: v2alpha1, resource: synctargets}
description: Machines at the coast.
availableSelectorLabels: [{key: env, values: [prod], description: Which environment.}]
instanceSelector: {matchLabels: {env: prod}}
availableTo: {workspaces: ["root:teams:web", "root:teams:*"]}`},
		"instances that are Pods":       {spec: `resource: {version: v2alpha1, resource: pods}`, field: "spec.resource.resource"},
		"all workspaces":                {spec: `availableTo: {workspaces: ["*"]}`, field: "spec.availableTo.workspaces[0]"},
		"a path with a wildcard inside": {spec: `availableTo: {workspaces: ["root:*:web"]}`, field: "spec.availableTo.workspaces[0]"},
		"a workspace twice":             {spec: `availableTo: {workspaces: ["root:a", "root:a"]}`, field: "spec.availableTo.workspaces[1]"},
	} {
		t.Run(name, func(t *testing.T) {
			requireOneError(t, location.create(t, object(t, "edge.kubestellar.io/v2alpha1", "Location", test.spec)), test.field)
		})
	}
}

func TestEdgeDefaults(t *testing.T) {
	const group = "edge.kubestellar.io/v2alpha1"
	target := object(t, group, "SyncTarget", `kubeconfigSecretRef: {name: florin}`)
	newValidator(t, "synctargets.edge.kubestellar.io").create(t, target)
	requireValue(t, target, false, "spec", "unschedulable")
	requireValue(t, target, "Orphan", "spec", "deletionPolicy")
	requireValue(t, target, "default", "spec", "kubeconfigSecretRef", "namespace")
	requireValue(t, target, "kubeconfig", "spec", "kubeconfigSecretRef", "key")

	bare := map[string]any{"apiVersion": group, "kind": "SyncTarget"}
	newValidator(t, "synctargets.edge.kubestellar.io").create(t, bare)
	requireValue(t, bare, "Orphan", "spec", "deletionPolicy")

	config := map[string]any{"apiVersion": group, "kind": "SyncerConfig"}
	newValidator(t, "syncerconfigs.edge.kubestellar.io").create(t, config)
	requireValue(t, config, "Delete", "spec", "deletionPolicy")
	requireValue(t, config, true, "spec", "statusReturn")

	placement := object(t, group, "EdgePlacement", `{}`)
	newValidator(t, "edgeplacements.edge.kubestellar.io").create(t, placement)
	requireValue(t, placement, "Delete", "spec", "deletionPolicy")

	// A JSON patch that adds to a list needs the list.
	for _, spec := range []string{`{}`, `availableTo: {upsync: true}`, `availableTo: null`, `availableTo: {workspaces: null}`} {
		location := object(t, group, "Location", spec)
		newValidator(t, "locations.edge.kubestellar.io").create(t, location)
		requireValue(t, location, []any{}, "spec", "availableTo", "workspaces")
	}
}

// Objects of KubeStellar 0.14 apply unchanged. The test has every field that its placement translator, its setup
// scripts and its users wrote.
func TestKubeStellarObjectsApply(t *testing.T) {
	for name, test := range map[string]struct{ crd, manifest string }{
		"SyncTarget": {crd: "synctargets.edge.kubestellar.io", manifest: `
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncTarget
metadata:
  name: harbour
  labels: {env: prod, "internal.workload.kcp.dev/key": abc}
spec:
  unschedulable: false
  supportedAPIExports:
  - export: kubernetes
  cells: {foo: bar}
status:
  syncedResources:
  - {group: apps, resource: deployments, versions: [v1], identityHash: "", state: Accepted}
  virtualWorkspaces:
  - {syncerURL: "https://example.com/a", upsyncerURL: "https://example.com/b"}`},

		"SyncTarget without a spec": {crd: "synctargets.edge.kubestellar.io", manifest: `
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncTarget
metadata: {name: harbour}`},

		"SyncerConfig of the placement translator": {crd: "syncerconfigs.edge.kubestellar.io", manifest: `
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: the-one}
spec:
  namespaceScope: {}
  namespacedObjects:
  - group: ""
    resource: configmaps
    apiVersion: v1
    objectsByNamespace:
    - {namespace: shop, names: [prices, kube-root-ca.crt]}
    - {namespace: bank, names: []}
  - group: apps
    resource: deployments
    apiVersion: v1
    objectsByNamespace:
    - {namespace: shop, names: [till]}
  clusterScope:
  - {group: "", resource: namespaces, apiVersion: v1, objects: [shop, bank]}
  - {group: rbac.authorization.k8s.io, resource: clusterroles, apiVersion: v1, objects: ["shop:reader"]}
  - {group: apiextensions.k8s.io, resource: customresourcedefinitions, apiVersion: v1}
  upsync:
  - {apiGroup: wgpolicyk8s.io, resources: [policyreports, clusterpolicyreports], namespaces: [shop], names: ["*"]}
status: {}`},

		"SyncerConfig with wildcards": {crd: "syncerconfigs.edge.kubestellar.io", manifest: `
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: all}
spec:
  namespaceScope:
    namespaces: [shop, "*"]
    resources:
    - {group: "", resource: "*", apiVersion: v1}
    - {group: batch, resource: jobs, apiVersion: v1}
  clusterScope:
  - {group: kyverno.io, resource: clusterpolicies, apiVersion: v1, objects: ["*"]}
  upsync:
  - {resources: ["*"], namespaces: ["*"], names: ["*"]}
status:
  lastSyncerHeartbeatTime: "2024-01-02T03:04:05Z"`},

		"SyncerConfig without a spec": {crd: "syncerconfigs.edge.kubestellar.io", manifest: `
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: nothing}`},

		"Location": {crd: "locations.edge.kubestellar.io", manifest: `
apiVersion: edge.kubestellar.io/v2alpha1
kind: Location
metadata:
  name: harbour
  labels: {env: prod}
spec:
  resource: {group: edge.kubestellar.io, version: v2alpha1, resource: synctargets}
  instanceSelector:
    matchLabels: {id: harbour}
status: {instances: 1, availableInstances: 1}`},

		"EdgePlacement": {crd: "edgeplacements.edge.kubestellar.io", manifest: `
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata:
  name: till
spec:
  locationSelectors:
  - matchLabels: {"env":"prod"}
  downsync:
  - apiGroup: ""
    resources: [ configmaps ]
    namespaces: [ shop ]
    objectNames: [ prices ]
  - apiGroup: apps
    resources: [ replicasets ]
    namespaces: [ shop ]
  - apiGroup: ""
    resources: [ secrets ]
    namespaceSelectors:
    - matchLabels: {"common":"yes"}
    objectNames: [ "*" ]
  - apiGroup: rbac.authorization.k8s.io
    resources: [ clusterroles ]
    namespaceSelectors: []
    objectNames: [ "shop:reader" ]
  - labelSelectors:
    - matchLabels: {"app.kubernetes.io/part-of":"shop"}
  wantSingletonReportedState: true
  upsync:
  - apiGroup: "group1.test"
    resources: ["sprockets", "flanges"]
    namespaces: ["orbital"]
    names: ["george", "cosmo"]
  - apiGroup: "group2.test"
    resources: ["cogs"]
    names: ["william"]
status: {specGeneration: 1, matchingLocationCount: 2}`},

		"EdgePlacement of the 0.14 clients, which write an absent group as null": {crd: "edgeplacements.edge.kubestellar.io", manifest: `
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: named}
spec:
  locationSelectors: [{}]
  downsync: [{apiGroup: null, objectNames: [till]}]
status: {matchingLocationCount: 0}`},

		"SinglePlacementSlice": {crd: "singleplacementslices.edge.kubestellar.io", manifest: `
apiVersion: edge.kubestellar.io/v2alpha1
kind: SinglePlacementSlice
metadata: {name: till}
destinations:
- cluster: 1yotsgod0d2p3xa5
  locationName: harbour
  syncTargetName: harbour
  syncTargetUID: 73e1e9a9-5bd5-4b3c-a4e7-9d1a1c2b3d4e`},

		"Customizer": {crd: "customizers.edge.kubestellar.io", manifest: `
apiVersion: edge.kubestellar.io/v2alpha1
kind: Customizer
metadata:
  namespace: shop
  name: till
  annotations: {edge.kubestellar.io/expand-parameters: "true"}
replacements:
- path: "$.spec.template.spec.containers.0.env.0.value"
  value: '"till of %(city)"'
- path: "$.spec.replicas"
  value: "3"`},

		"EdgeSyncConfig": {crd: "edgesyncconfigs.edge.kubestellar.io", manifest: `
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgeSyncConfig
metadata: {name: policies}
spec:
  downSyncedResources:
  - {kind: Namespace, group: "", version: v1, name: policy}
  - {kind: CustomResourceDefinition, group: apiextensions.k8s.io, version: v1, name: reports.example.org.natured}
  - {kind: ConfigMap, group: "", version: v1, name: "*", namespace: policy}
  upSyncedResources:
  - {kind: Report, group: example.org, version: v1alpha2, name: "*", namespace: "*"}
  - {kind: Report, group: example.org, version: v1alpha2, name: "system:one"}
  conversions:
  - upstream: {kind: CustomResourceDefinition, group: apiextensions.k8s.io, name: reports.example.org.natured}
    downstream: {kind: CustomResourceDefinition, group: apiextensions.k8s.io, name: reports.example.org}
  - upstream: {kind: Report, group: example.org.natured, version: v1alpha2, name: "*"}
    downstream: {kind: Report, group: example.org, version: v1alpha2, name: "*"}`},
	} {
		t.Run(name, func(t *testing.T) {
			requireOneError(t, newValidator(t, test.crd).create(t, decode(t, test.manifest)), "")
		})
	}
}

func object(t *testing.T, apiVersion, kind, spec string) map[string]any {
	t.Helper()
	return map[string]any{
		"apiVersion": apiVersion,
		"kind":       kind,
		"metadata":   map[string]any{"name": "tested"},
		"spec":       decode(t, spec),
	}
}
