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

package register

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/provider/rbac"
)

const registerLong = `Register a cluster as a SyncTarget of the current workspace, which must be an inventory workspace.

On the cluster, the command creates a namespace, a ServiceAccount with rights for the resources in all namespaces, and a token
with a limited lifetime, which the hub renews. In the workspace, it creates the SyncTarget and a Secret with a kubeconfig for
the hub. Only this SyncTarget may use the Secret. Then the command waits until the SyncTarget is ready.

All users who may write to the mailbox use these rights. Without --tenant-role, and with the default rights they are in effect administrators of the
cluster, unless the cluster prevents it: see docs/security.md.

With --tenancy=PerWorkspace and --tenant-role, each workload workspace has namespaces of its own on the cluster, and the rights of
that ClusterRole in them. The hub then gets no rights to write workloads, Secrets and roles: it impersonates a ServiceAccount for each
workspace, so that the cluster decides what a workspace may do.

With --namespaces, the hub gets rights in these namespaces only, by a Role in each. The command also sets
spec.namespaces.only of the SyncTarget. The namespaces must exist, since the hub cannot create them. The hub gets no rights for
cluster-scoped resources. If you repeat the command with other namespaces, it shows the additional ones as growth, and revokes
the rights in the ones that you no longer name.

You can repeat the command. It writes nothing that is in place, and keeps the identity on the cluster. It keeps the rights of
the last registration unless you give --resources. The rights come from the flags and, with the kubeconfig of the hosting
cluster, from the PublishedResources there. For a new cluster, the default is the resources that the chart publishes. The
status of a SyncTarget and the content of a mailbox never grant rights. If the rights would grow, the command shows the
additional rights and asks for confirmation; --yes confirms. The hub never gets the administrator's kubeconfig.

A resource is written as deployments.apps, or as configmaps in the core group. With ":up" after it the hub may only read the
resource, with ":crd" it may install the definition.

With the kubeconfig of the hosting cluster, the command also publishes the resources of --resources and --add-resources that
nobody has published yet: it creates a PublishedResource for each, with the schema of this cluster. It does not change an
existing PublishedResource. Without these two flags, the hub gets rights for all published resources.

With --tunnel, the cluster dials the hub, and the command does nothing on the cluster. It creates the SyncTarget and a token,
and prints the manifest to apply to the cluster, with the token and the address of the hub. It cannot read the present rights
on the cluster, so it records the granted rights with the token. Without that record, a registered cluster needs --resources.

In a dry run, the servers check all objects and store none. --dry-run=client prints manifests, without the fields that servers
set.`

const registerExample = `  # Register the cluster of another kubeconfig
  kubectl synchub register florin --target-kubeconfig florin.kubeconfig --labels env=prod

  # Print the objects that the command would create
  kubectl synchub register florin --target-kubeconfig florin.kubeconfig --dry-run=client -o yaml

  # Grant only the rights to sync Deployments and ConfigMaps, and to bring up Pods
  kubectl synchub register florin --target-kubeconfig florin.kubeconfig --resources deployments.apps,configmaps,pods:up

  # Grant rights in two namespaces only
  kubectl synchub register florin --target-kubeconfig florin.kubeconfig --namespaces shop,till

  # Let several workspaces share the cluster, each with the rights of the ClusterRole edit in its own namespaces
  kubectl synchub register florin --target-kubeconfig florin.kubeconfig --tenancy PerWorkspace --tenant-role edit

  # Grant more rights than before
  kubectl synchub register florin --target-kubeconfig florin.kubeconfig --add-resources jobs.batch --yes

  # Take over objects that are on the cluster already and equal the objects of the mailbox
  kubectl synchub register florin --target-kubeconfig florin.kubeconfig --adopt

  # Publish an API of the cluster to all mailboxes
  kubectl synchub register florin --target-kubeconfig florin.kubeconfig --resources databases.example.com --hosting-kubeconfig hosting.kubeconfig

  # Register a cluster that only has outbound connections: apply the printed manifest to it
  kubectl synchub register florin --tunnel -o yaml > florin-tunnel.yaml

  # Give the hub a kubeconfig that the administrator of the cluster created
  kubectl synchub register florin --kubeconfig-only for-the-hub.kubeconfig`

// adoptNever revokes the adoption that --adopt allowed before.
const adoptNever = "Never"

var adoptions = []string{"", string(edgev2alpha1.AdoptionIfIdentical), string(edgev2alpha1.AdoptionAlways), adoptNever}

// registerOptions are the flags of register and rotate.
type registerOptions struct {
	*cli.InventoryOptions
	target                  cli.TargetFlags
	tunnel                  tunnelFlags
	hosting                 cli.HostingFlags
	hubKubeconfig           string
	labels                  map[string]string
	resources, addResources []string
	namespaces              []string
	tenancy, tenantRole     string
	adopt                   string
	escalate, yes           bool
	lifetime                time.Duration
	cli.WaitFlags
}

// NewCommand returns the command register.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	options := &registerOptions{InventoryOptions: cli.NewInventoryOptions(streams)}
	command := &cobra.Command{
		Use:     "register NAME (--target-kubeconfig FILE | --kubeconfig-only FILE | --tunnel -o yaml)",
		Short:   "Register a cluster as a SyncTarget",
		Long:    registerLong,
		Example: registerExample,
		RunE:    func(command *cobra.Command, args []string) error { return options.register(command.Context(), args[0]) },
	}
	options.WithNamespace()
	options.addFlags(command)
	command.Flags().Lookup("namespace").Usage = "namespace of the Secret with the kubeconfig for the hub; the default is the namespace of the current context"
	options.hosting.AddFlags(command, "kubeconfig of the cluster that hosts the hub: the hub gets rights for the resources that are published there, and unpublished resources of --resources and --add-resources are published from the target")
	options.tunnel.addFlags(command)
	flags := command.Flags()
	flags.StringVar(&options.hubKubeconfig, "kubeconfig-only", "", "give the hub this kubeconfig and do nothing on the cluster")
	flags.StringToStringVar(&options.labels, "labels", nil, "labels for the SyncTarget")
	flags.StringSliceVar(&options.resources, "resources", nil, "the only resources to grant rights for")
	flags.StringSliceVar(&options.addResources, "add-resources", nil, "more resources to grant rights for")
	flags.StringSliceVar(&options.namespaces, "namespaces", nil, "the only namespaces of the cluster in which the hub gets rights and syncs; they must exist. '*' means the whole cluster again")
	flags.StringVar(&options.tenancy, "tenancy", "", "how workload workspaces share the cluster: Shared, if a namespace has the same name for all of them; PerWorkspace, if each has namespaces of its own")
	flags.StringVar(&options.tenantRole, "tenant-role", "", "with --tenancy=PerWorkspace: a ClusterRole of the cluster, for example edit, that each workspace gets in its namespaces. The hub then impersonates a ServiceAccount for each workspace, and gets no rights to write workloads itself")
	flags.StringVar(&options.adopt, "adopt", "", "take over objects that are on the cluster already: IfIdentical, if the hub would change only its marks; Always, every object of the name; Never undoes this")
	flags.Lookup("adopt").NoOptDefVal = string(edgev2alpha1.AdoptionIfIdentical)
	flags.BoolVarP(&options.yes, "yes", "y", false, "do not ask before rights grow")
	flags.BoolVar(&options.escalate, "allow-rbac-escalation", false, "let the hub write roles that grant more than its own rights, and bindings to them: every user who writes to the mailbox can then do anything on the cluster")
	options.AddWait(command, "the SyncTarget is ready", true, 5*time.Minute)
	addLifetime(command, &options.lifetime)
	return command
}

// addFlags adds the flags of register and rotate.
func (o *registerOptions) addFlags(command *cobra.Command) {
	o.AddFlags(command)
	o.target.AddFlags(command)
	command.Flags().Lookup("dry-run").Usage = "none, client or server: with client and server, the servers check all writes and store none; client prints manifests"
}

func addLifetime(command *cobra.Command, lifetime *time.Duration) {
	command.Flags().DurationVar(lifetime, "token-lifetime", 30*24*time.Hour, "lifetime of the token; the cluster may shorten it, and the hub renews the token")
}

func (o *registerOptions) check() error {
	if err := o.Complete(); err != nil {
		return err
	}
	switch {
	case o.tunnel.enabled:
		if err := o.checkTunnel(); err != nil {
			return err
		}
	case o.hubKubeconfig == "":
		if err := o.target.Required(); err != nil {
			return fmt.Errorf("%w; or else --kubeconfig-only: one that was made for the hub", err)
		}
	case o.target.Kubeconfig != "" || o.target.Context != "" || o.hosting.IsSet() || len(o.resources)+len(o.addResources) > 0 || o.escalate:
		return errors.New("with --kubeconfig-only the command does nothing on the cluster: leave out --target-kubeconfig, --target-context, --hosting-kubeconfig, --hosting-context, --resources, --add-resources and --allow-rbac-escalation")
	}
	if err := checkNamespaces(o.namespaces); err != nil {
		return fmt.Errorf("--namespaces: %w", err)
	}
	if err := o.checkTenancy(); err != nil {
		return err
	}
	if !slices.Contains(adoptions, o.adopt) {
		return fmt.Errorf("--adopt: %q is none of IfIdentical, Always and Never", o.adopt)
	}
	return cmp.Or(o.checkLifetime(), o.CheckTimeout())
}

// requestedTenancy returns the tenancy of the flags; nil keeps the present one.
func (o *registerOptions) requestedTenancy() *registration.Tenancy {
	if o.tenancy == "" {
		return nil
	}
	return &registration.Tenancy{Namespaces: edgev2alpha1.NamespaceTenancy(o.tenancy), Role: o.tenantRole}
}

func (o *registerOptions) checkTenancy() error {
	requested := o.requestedTenancy()
	if requested == nil {
		if o.tenantRole != "" {
			return errors.New("--tenant-role: it needs --tenancy=PerWorkspace")
		}
		return nil
	}
	return requested.Validate(o.namespaces)
}

// checkNamespaces returns an error unless each name is valid for a namespace, or is "*".
func checkNamespaces(names []string) error {
	if slices.Equal(names, []string{registration.AllNamespaces}) {
		return nil
	}
	for _, name := range names {
		if name == registration.Namespace {
			return fmt.Errorf("%s is where the hub's identities are", name)
		}
		if problems := content.IsDNS1123Label(name); len(problems) > 0 {
			return fmt.Errorf("%q is not the name of a namespace: %s", name, problems[0])
		}
	}
	return nil
}

func (o *registerOptions) checkLifetime() error {
	if o.lifetime < 10*time.Minute {
		return fmt.Errorf("--token-lifetime: %s is less than the 10m that a cluster allows", o.lifetime)
	}
	return nil
}

// plan returns the planned registration. It reads files but sends no requests.
func (o *registerOptions) plan(name string) (*registration.Registrar, error) {
	plan, err := o.newRegistrar(name)
	if err != nil {
		return nil, err
	}
	if o.hubKubeconfig != "" {
		plan.Kubeconfig, err = os.ReadFile(o.hubKubeconfig)
		return plan, err
	}
	if plan.Admin, err = registration.LoadAdminConfig(o.target.Kubeconfig, o.target.Context); err != nil {
		return nil, err
	}
	writes, err := cli.ClientOf(plan.Admin.Config)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the target: %w", err)
	}
	plan.TargetClient = o.WithDryRun(writes)
	return plan, nil
}

// newRegistrar returns a registration without access to the target.
func (o *registerOptions) newRegistrar(name string) (*registration.Registrar, error) {
	inventory, err := o.Inventory()
	if err != nil {
		return nil, err
	}
	plan := &registration.Registrar{
		Name: name, Labels: o.labels, RBACOptions: rbac.Options{Escalate: o.escalate}, Lifetime: o.lifetime,
		Inventory: inventory, Info: o.Note, Confirm: o.ConfirmFunc(o.yes), Clock: clock.RealClock{},
		Namespaces: o.namespaces, Tenancy: o.requestedTenancy(),
		IsProtected: func(namespace string, allowed []string) bool {
			return policy.DefaultProtectedNamespaces.Match(namespace) && !policy.NamespacePatterns(allowed).Match(namespace)
		},
	}
	if o.adopt != "" {
		plan.Adoption = new(edgev2alpha1.AdoptionPolicy(o.adopt))
		if o.adopt == adoptNever {
			*plan.Adoption = ""
		}
	}
	if plan.Requested.Resources, err = rbac.ParseResources(o.resources); err != nil {
		return nil, fmt.Errorf("--resources: %w", err)
	}
	if plan.Requested.Additional, err = rbac.ParseResources(o.addResources); err != nil {
		return nil, fmt.Errorf("--add-resources: %w", err)
	}
	return plan, nil
}

func (o *registerOptions) register(ctx context.Context, name string) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.tunnel.enabled {
		return o.registerTunnel(ctx, name)
	}
	plan, err := o.plan(name)
	if err != nil {
		return err
	}
	imports, err := o.planPublishing(ctx, plan)
	if err != nil {
		return err
	}
	syncTarget, err := plan.Register(ctx)
	if err != nil {
		return err
	}
	if err := imports.publish(ctx); err != nil {
		return err
	}
	if o.DryRun == cli.DryRunNone && o.Wait {
		if err = o.await(ctx, syncTarget); err == nil {
			err = imports.waitPublished(ctx)
		}
	}
	return errors.Join(err, imports.remainingSteps())
}

// await waits until the SyncTarget is ready.
func (o *registerOptions) await(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget) error {
	wait := &cli.SyncTargetWait{
		InventoryOptions: o.InventoryOptions, WaitFlags: o.WaitFlags,
		Done: registration.IsReady, Steps: registration.ReadySteps, Describe: cli.DescribeNotReady, Result: "ready",
	}
	return wait.Run(ctx, syncTarget)
}
