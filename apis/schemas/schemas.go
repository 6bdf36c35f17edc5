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
	"embed"
	"fmt"
	"io/fs"
	"path"
	"sync"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// EdgeGroup is the API group of the kinds that kcp workspaces bind. It is not imported from the package of the types:
// the generator needs this package even while the generated part of that package does not compile.
const EdgeGroup = "edge.kubestellar.io"

// Directories of the generated files, relative to this package.
const (
	// CRDDirectory contains one CustomResourceDefinition per file, for every kind.
	CRDDirectory = "crds"

	// APIResourceSchemaDirectory contains one APIResourceSchema per file, for the kinds that kcp workspaces bind.
	APIResourceSchemaDirectory = "apiresourceschemas"
)

// WorkloadSchemaPrefix begins the names of the workload export's copies of schemas that the mailbox export has, too.
const WorkloadSchemaPrefix = "w"

//go:embed crds/*.yaml apiresourceschemas/*.yaml
var generated embed.FS

var (
	crds = sync.OnceValue(func() map[string]*apiextensionsv1.CustomResourceDefinition {
		return load(CRDDirectory, func(crd *apiextensionsv1.CustomResourceDefinition) string { return crd.Name })
	})
	apiResourceSchemas = sync.OnceValue(func() map[string]*apisv1alpha1.APIResourceSchema {
		return load(APIResourceSchemaDirectory, func(schema *apisv1alpha1.APIResourceSchema) string {
			return schema.Spec.Names.Plural + "." + schema.Spec.Group
		})
	})
)

// CRD returns a copy of the CustomResourceDefinition with the given name, for example
// "synctargets.edge.kubestellar.io". It returns an error if the project has no such kind.
func CRD(name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd, ok := crds()[name]
	if !ok {
		return nil, fmt.Errorf("there is no CustomResourceDefinition %q among the project's own kinds", name)
	}
	return crd.DeepCopy(), nil
}

// PublishedResourceCRD returns a copy of the CustomResourceDefinition that the hosting cluster needs.
func PublishedResourceCRD() *apiextensionsv1.CustomResourceDefinition {
	return crds()["publishedresources.synchub.dev"].DeepCopy()
}

// MailboxSchemas returns copies of the APIResourceSchemas of the project's kinds that mailbox workspaces bind:
// SyncerConfig, EdgeSyncConfig and SyncRules.
func MailboxSchemas() []*apisv1alpha1.APIResourceSchema {
	return copies("syncerconfigs", "edgesyncconfigs", "syncrules")
}

// InventorySchemas returns copies of the APIResourceSchemas that inventory workspaces bind: SyncTarget and Location.
func InventorySchemas() []*apisv1alpha1.APIResourceSchema {
	return copies("synctargets", "locations")
}

// WorkloadSchemas returns copies of the APIResourceSchemas of the project's kinds that workload workspaces bind:
// EdgePlacement, SinglePlacementSlice, Customizer, PlacementRevision and SyncRules.
func WorkloadSchemas() []*apisv1alpha1.APIResourceSchema {
	all := copies("edgeplacements", "singleplacementslices", "customizers", "placementrevisions", "syncrules")
	// Mailboxes bind SyncRules too. kcp confuses the objects of two exports that share a schema.
	shared := all[len(all)-1]
	shared.Name = WorkloadSchemaPrefix + shared.Name
	return all
}

func copies(resources ...string) []*apisv1alpha1.APIResourceSchema {
	all := make([]*apisv1alpha1.APIResourceSchema, 0, len(resources))
	for _, resource := range resources {
		all = append(all, apiResourceSchemas()[resource+"."+EdgeGroup].DeepCopy())
	}
	return all
}

// load decodes the embedded files of a directory. It panics on a broken file, because the files are part of the
// program and tests read all of them.
func load[T any](directory string, key func(*T) string) map[string]*T {
	files, err := fs.Glob(generated, path.Join(directory, "*.yaml"))
	if err != nil {
		panic(fmt.Sprintf("listing the embedded %s: %v", directory, err))
	}
	objects := make(map[string]*T, len(files))
	for _, file := range files {
		content, err := generated.ReadFile(file)
		if err != nil {
			panic(fmt.Sprintf("reading the embedded %s: %v", file, err))
		}
		object := new(T)
		if err := yaml.UnmarshalStrict(content, object); err != nil {
			panic(fmt.Sprintf("decoding the embedded %s: %v", file, err))
		}
		objects[key(object)] = object
	}
	return objects
}
