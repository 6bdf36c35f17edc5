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

package publish

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/manifests"
)

// DefaultNamespace is the namespace in which the README installs the hub.
const DefaultNamespace = "synchub"

const publishLong = `Publish the CustomResourceDefinitions of files: all mailboxes get their APIs.

Run the command against the cluster that hosts the hub. For each definition it creates a ConfigMap with the definition in the
hub's namespace, and a PublishedResource that takes its schema from there. The cluster itself need not serve the API. Both
objects get the name of the resource, such as widgets.example.com; the name of the ConfigMap has the prefix schema-. The command
ignores objects of other kinds in the files.

You can repeat the command. It replaces a definition that has changed, and the hub moves the mailboxes to the new schema. It
changes nothing else in a PublishedResource, so your rules stay. It does not change a resource that is published from another
source. It deletes nothing.

The definition is stored as JSON, without its status. If it is larger than the 1 MiB that a ConfigMap holds, the command stores
it without its descriptions, and prints a note.

With --dry-run=client -o yaml the command prints the objects, to be applied later by kubectl apply --server-side. Without
--server-side kubectl would refuse large ConfigMaps. If the cluster does not answer, the command prints the objects for a
cluster where nothing is published.`

const publishExample = `  # Publish all definitions of a file
  kubectl synchub publish -f crds.yaml

  # Wait until the PublishedResources are ready. The hub runs in the namespace hub
  kubectl synchub publish -f crds.yaml -n hub --wait

  # Have the hub install the definitions on the targets, too
  kubectl synchub publish -f crds.yaml --install-crd

  # Print the objects, to commit them
  kubectl synchub publish -f crds.yaml --dry-run=client -o yaml`

// publishOptions are the flags of
type publishOptions struct {
	*cli.InventoryOptions
	files []string
	// installCRD is nil if the flag is not set.
	installCRD *bool
	cli.WaitFlags
}

// NewCommand returns the command
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &publishOptions{InventoryOptions: cli.NewInventoryOptions(streams)}
	options.Cluster.Namespace = new(DefaultNamespace)
	var install bool
	command := &cobra.Command{
		Use:     "publish -f FILE",
		Short:   "Publish the CustomResourceDefinitions of files",
		Long:    publishLong,
		Example: publishExample,
		RunE: func(command *cobra.Command, _ []string) error {
			if command.Flags().Changed("install-crd") {
				options.installCRD = &install
			}
			return options.run(command.Context())
		},
	}
	options.Cluster.AddFlags(command.Flags())
	options.AddWriteFlags(command)
	command.Args, command.ValidArgsFunction = cli.NoArguments, cobra.NoFileCompletions
	flags := command.Flags()
	flags.Lookup("namespace").Usage = "the namespace of the hub, regardless of the namespace of the context"
	flags.StringArrayVarP(&options.files, "filename", "f", nil, "files with CustomResourceDefinitions, as documents or in Lists; - is standard input (repeatable)")
	flags.BoolVar(&install, "install-crd", false, "have the hub install the definitions on the targets; =false undoes that, and installed definitions stay")
	options.AddWait(command, "the PublishedResources are ready; mailboxes get the APIs within seconds of that", false, 2*time.Minute)
	_ = command.MarkFlagRequired("filename")
	return command
}

func (o *publishOptions) check() error {
	if err := o.Complete(); err != nil {
		return err
	}
	if problems := content.IsDNS1123Label(*o.Cluster.Namespace); len(problems) > 0 {
		return fmt.Errorf("--namespace: %q is not the name of a namespace: %s", *o.Cluster.Namespace, problems[0])
	}
	return o.CheckTimeout()
}

func (o *publishOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	definitions, err := o.readDefinitions()
	if err != nil {
		return err
	}
	publisher, err := o.newPublisher(ctx)
	if err != nil {
		return err
	}
	planned, err := publisher.plan(ctx, definitions)
	if err != nil {
		return err
	}
	for _, definition := range planned {
		if err := publisher.apply(ctx, definition); err != nil {
			return err
		}
	}
	if !o.Wait || o.DryRun != cli.DryRunNone {
		return nil
	}
	return publisher.waitReady(ctx, planned)
}

// readDefinitions returns the CustomResourceDefinitions in the files. It notes how many other objects there are.
func (o *publishOptions) readDefinitions() ([]*unstructured.Unstructured, error) {
	var definitions []*unstructured.Unstructured
	ignored := map[string]int{}
	err := manifests.Each(o.In, o.files, func(object *unstructured.Unstructured) error {
		kind := object.GroupVersionKind()
		switch {
		case kind.Group != apiextensionsv1.GroupName || kind.Kind != "CustomResourceDefinition":
			ignored[kind.Kind]++
		case kind.Version != apiextensionsv1.SchemeGroupVersion.Version:
			return fmt.Errorf("the CustomResourceDefinition %s is written in %s, which the hub does not read: convert it to %s", object.GetName(), kind.GroupVersion(), apiextensionsv1.SchemeGroupVersion)
		default:
			definitions = append(definitions, object)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(definitions) == 0 {
		return nil, errors.New("-f: there is no CustomResourceDefinition in the files")
	}
	if len(ignored) > 0 {
		var counts []string
		for _, kind := range slices.Sorted(maps.Keys(ignored)) {
			counts = append(counts, fmt.Sprintf("%s (%d)", kind, ignored[kind]))
		}
		o.Note(fmt.Sprintf("Objects of other kinds in the files are left out: %s.", strings.Join(counts, ", ")))
	}
	return definitions, nil
}

// noteDefinition prints the differences between a plan and the file.
func (o *publishOptions) noteDefinition(planned Definition) {
	if planned.ConfigMap == nil {
		o.Note(fmt.Sprintf("%s is published already, not from this command's ConfigMap: the PublishedResource %s is left as it is.", planned.Resource, planned.Existing.Name))
	}
	if planned.FullBytes > 0 {
		o.Note(fmt.Sprintf("The descriptions of %s are left out: with them the definition takes %d bytes, and a ConfigMap holds %d.", planned.Resource, planned.FullBytes, MaxConfigMapBytes))
	}
}
