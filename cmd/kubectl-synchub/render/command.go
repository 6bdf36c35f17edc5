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

package render

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/manifests"
	"github.com/synchub-dev/synchub/provider/discovery"
)

const renderLong = `Print the effect of a PublishedResource, by the code that the hub runs: the schema or the claim with which mailboxes get the API
and, with --object, the copy on a target for an object of a mailbox.

The command changes nothing. It takes the definition of the API from the files: a CustomResourceDefinition, or the ConfigMap
that the PublishedResource names. If the files lack it, the command reads it from the cluster of --kubeconfig and --context,
which is the hosting cluster for a ConfigMap.

Without -f, the command uses the rules that the hub shows in the current workspace, as SyncRules. The workspace is a mailbox or
a workload workspace, and the command prints only the copies of the objects.`

const renderExample = `  # The claim for ConfigMaps, offline
  kubectl synchub published-resource render -f configmaps.yaml

  # The schema of an own API, and the copy of one object
  kubectl synchub published-resource render -f widgets.yaml -f widgets-crd.yaml --object widget.yaml

  # The schema of a kind that the current cluster serves
  kubectl synchub published-resource render -f deployments.yaml

  # The copy of an object of the current workspace, by the rules of the hub
  kubectl synchub published-resource render --object widget.yaml`

// renderOptions are the flags of render.
type renderOptions struct {
	genericiooptions.IOStreams
	cluster        *genericclioptions.ConfigFlags
	files, objects []string
	output         cli.StructuredOutput
	environment    Environment
}

// NewCommand returns the command published-resource render.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &renderOptions{IOStreams: streams, cluster: cli.NewClusterFlags(true)}
	command := &cobra.Command{
		Use:     "render [-f FILE] [--object FILE]",
		Short:   "Print the effect of a PublishedResource",
		Long:    renderLong,
		Example: renderExample,
		Args:    cli.NoArguments,
		RunE:    func(command *cobra.Command, _ []string) error { return options.run(command.Context()) },
	}
	flags := command.Flags()
	flags.StringArrayVarP(&options.files, "filename", "f", nil, "files with the PublishedResource and the definition of its API; - is standard input (repeatable)")
	flags.StringArrayVar(&options.objects, "object", nil, "files with objects of a mailbox, and namespaces whose labels a filter asks for (repeatable)")
	options.output = "yaml"
	options.output.AddFlag(command)
	flags.StringVar(&options.environment.Mailbox, "mailbox", "mailbox", "the name of the mailbox's logical cluster, for templates")
	flags.StringVar(&options.environment.SyncTarget, "sync-target", "sync-target", "the name of the SyncTarget, for templates and mutations")
	flags.StringToStringVar(&options.environment.Labels, "sync-target-labels", nil, "the labels of the SyncTarget, for mutations")
	flags.StringToStringVar(&options.environment.Annotations, "sync-target-annotations", nil, "the annotations of the SyncTarget, for mutations")
	options.cluster.AddFlags(flags)
	command.MarkFlagsOneRequired("filename", "object")
	return command
}

func (o *renderOptions) run(ctx context.Context) error {
	input, err := manifests.Read(o.In, o.files)
	if err != nil {
		return err
	}
	objects, err := manifests.Read(o.In, o.objects)
	if err != nil {
		return err
	}
	printer := &printer{streams: o.IOStreams, format: o.output}
	switch {
	case len(o.files) == 0:
		return o.renderByRules(ctx, objects, printer)
	case len(input.Published) == 0:
		return errors.New("-f: there is no PublishedResource in the files")
	}
	for i := range input.Published {
		if err := o.render(ctx, &input.Published[i], input, objects, printer); err != nil {
			return fmt.Errorf("PublishedResource %s: %w", input.Published[i].Name, err)
		}
	}
	return printer.flush()
}

// renderByRules prints what becomes of objects by the rules that the hub shows in the current workspace.
func (o *renderOptions) renderByRules(ctx context.Context, objects *manifests.Manifests, printer *printer) error {
	config, err := o.cluster.ToRESTConfig()
	if err != nil {
		return err
	}
	workspace, err := cli.NewReader(config)
	if err != nil {
		return err
	}
	published, err := cli.PublishedByRules(cli.ReadRules(ctx, workspace))
	if err != nil {
		return err
	}
	for _, object := range objects.Objects {
		kind := object.GroupVersionKind()
		mapping, err := workspace.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return err
		}
		resource := mapping.Resource.GroupResource()
		api, err := workspace.Served(resource)
		if err != nil {
			return err
		}
		made, err := Served(published, resource, api, o.environment)
		switch {
		case err != nil:
			return err
		case made == nil && resource == cli.NamespacesResource.GroupResource():
			// The Namespace was passed for its labels only.
			continue
		case made == nil:
			return fmt.Errorf("%s %s: no PublishedResource publishes %s", object.GetKind(), nameOf(object), resource)
		}
		if err := printer.renderedObject(made, object, objects.NamespaceLabels[object.GetNamespace()]); err != nil {
			return err
		}
	}
	return printer.flush()
}

func (o *renderOptions) render(ctx context.Context, resource *synchubv1alpha1.PublishedResource, input, objects *manifests.Manifests, printer *printer) error {
	definition, err := input.DefinitionOf(resource)
	if err != nil {
		return err
	}
	made, err := New(ctx, resource, definition, o.environment)
	if errors.Is(err, ErrNoCRD) {
		if definition, err = o.readDefinition(ctx, resource); err != nil {
			return err
		}
		made, err = New(ctx, resource, definition, o.environment)
	}
	if err != nil {
		return err
	}
	printer.api(made)
	for _, object := range objects.Objects {
		if err := printer.renderedObject(made, object, objects.NamespaceLabels[object.GetNamespace()]); err != nil {
			return err
		}
	}
	return nil
}

// readDefinition reads the CRD from a cluster if the files do not contain it.
func (o *renderOptions) readDefinition(ctx context.Context, resource *synchubv1alpha1.PublishedResource) (*apiextensionsv1.CustomResourceDefinition, error) {
	config, err := o.cluster.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("the files do not define the API, and no cluster can be asked: %w", err)
	}
	if from := resource.Spec.API.SchemaFrom; from != nil && from.ConfigMap != nil {
		return o.readConfigMap(ctx, from.ConfigMap)
	}
	client, err := discovery.NewClient(config, nil)
	if err != nil {
		return nil, err
	}
	definition, err := client.CRDFor(ctx, resource.Spec.Resource)
	if err != nil {
		return nil, fmt.Errorf("the files do not define the API, and %s does not either: %w", config.Host, err)
	}
	return definition, nil
}

func (o *renderOptions) readConfigMap(ctx context.Context, from *synchubv1alpha1.ConfigMapSchema) (*apiextensionsv1.CustomResourceDefinition, error) {
	config, err := o.cluster.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	hosting, err := cli.ClientOf(config)
	if err != nil {
		return nil, err
	}
	namespace, _, err := o.cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	var found corev1.ConfigMap
	if err := hosting.Get(ctx, types.NamespacedName{Namespace: namespace, Name: from.Name}, &found); err != nil {
		return nil, fmt.Errorf("spec.api.schemaFrom.configMap: it is neither in the files nor, with -n the hub's namespace, in the cluster: %w", err)
	}
	return manifests.ParseDefinition(&found, from)
}
