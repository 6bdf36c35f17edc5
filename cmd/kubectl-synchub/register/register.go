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

On the cluster it makes a namespace, a ServiceAccount with rights for the resources in all namespaces, and a token with a
bounded life, which the hub renews. In the workspace it makes the SyncTarget and a Secret with a kubeconfig for the hub, which
names this SyncTarget as the one that may use it. Then it waits until the hub says that the cluster is ready.

Whoever may write to the mailbox uses these rights. Those that the hub gets by default make him an administrator of the
cluster in all but name, unless the cluster prevents it: see docs/security.md.

With --namespaces the hub gets rights in these namespaces only, by a Role in each, and the SyncTarget's spec.namespaces.only says
so. The namespaces must exist: the hub cannot make any. It gets no rights for what is in no namespace. Another namespace is
shown as growth; from one that is not named any more its rights are taken.

It can be repeated: nothing is changed that is as it must be, and the identity on the cluster stays the same. What was granted
before stays, unless --resources says otherwise. Rights come from the flags, from the PublishedResources of the hosting
cluster if that is given, and for a new cluster from what the chart publishes by default; nothing that a SyncTarget's status or
a mailbox says is ever granted. Rights that would grow are shown, and granted after you said so, or with --yes. The
administrator's kubeconfig stays with you.

A resource is written as deployments.apps, or as configmaps in the core group. With ":up" behind it the hub may only read it,
with ":crd" it may install its definition.

With the hosting cluster's kubeconfig, what --resources and --add-resources name and nobody has published yet is brought to all
mailboxes as the cluster serves it, by a PublishedResource in the hosting cluster. One that there is stays as it is. Without
either of them, the hub gets rights for all that is published there.

With --tunnel the hub does not dial the cluster: the cluster dials the hub. The command makes the SyncTarget and a token, and prints the
manifest to apply to the cluster, with the token and the hub's address. It cannot ask the cluster which rights the hub has there, so it
records those that it grants with the token. Without that record, a cluster that is registered already needs --resources.`

const registerExample = `  # Register the cluster of another kubeconfig
  kubectl synchub register florin --target-kubeconfig florin.kubeconfig --labels env=prod

  # See what would be granted
  kubectl synchub register florin --target-kubeconfig florin.kubeconfig --dry-run=client -o yaml

  # Only what is needed to sync Deployments and ConfigMaps, and to bring up Pods
  kubectl synchub register florin --target-kubeconfig florin.kubeconfig --resources deployments.apps,configmaps,pods:up

  # Rights in two namespaces only
  kubectl synchub register florin --target-kubeconfig florin.kubeconfig --namespaces shop,till

  # More than was granted before
  kubectl synchub register florin --target-kubeconfig florin.kubeconfig --add-resources jobs.batch --yes

  # A cluster that had another SyncTarget before: take over what is there and is as the mailbox has it
  kubectl synchub register florin --target-kubeconfig florin.kubeconfig --adopt

  # Bring an API that the cluster serves to all mailboxes
  kubectl synchub register florin --target-kubeconfig florin.kubeconfig --resources databases.example.com --hosting-kubeconfig hosting.kubeconfig

  # A cluster that only has outbound connections: apply what is printed to the cluster
  kubectl synchub register florin --tunnel -o yaml > florin-tunnel.yaml

  # With a kubeconfig for the hub that the cluster's administrator made
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
	options.AddFlags(command)
	options.target.AddFlags(command)
	options.hosting.AddFlags(command, "kubeconfig of the cluster that hosts the hub: the hub gets rights for the resources that are published there, and unpublished resources of --resources and --add-resources are published from the target")
	options.tunnel.addFlags(command)
	flags := command.Flags()
	flags.StringVar(&options.hubKubeconfig, "kubeconfig-only", "", "give the hub this kubeconfig and do nothing on the cluster")
	flags.StringToStringVarP(&options.labels, "labels", "l", nil, "labels for the SyncTarget")
	flags.StringSliceVar(&options.resources, "resources", nil, "the resources to grant rights for, and no others")
	flags.StringSliceVar(&options.addResources, "add-resources", nil, "resources to grant rights for beside those that are granted anyway")
	flags.StringSliceVar(&options.namespaces, "namespaces", nil, "the only namespaces of the cluster that the hub gets rights in and uses; they must exist. '*' stands for the whole cluster again")
	flags.StringVar(&options.adopt, "adopt", "", "take over objects that are on the cluster already: IfIdentical, if ours would change nothing but marks; Always, whatever has the name; Never undoes this")
	flags.Lookup("adopt").NoOptDefVal = string(edgev2alpha1.AdoptionIfIdentical)
	flags.BoolVarP(&options.yes, "yes", "y", false, "do not ask before rights grow")
	flags.BoolVar(&options.escalate, "allow-rbac-escalation", false, "let the hub write roles that grant more than it has itself, and bindings to them: whoever writes to the mailbox can then do anything on the cluster")
	options.AddWait(command, "the SyncTarget is ready", true, 2*time.Minute)
	addLifetime(command, &options.lifetime)
	return command
}

func addLifetime(command *cobra.Command, lifetime *time.Duration) {
	command.Flags().DurationVar(lifetime, "token-lifetime", 30*24*time.Hour, "how long the token is to last; the cluster may make it shorter, and the hub renews it")
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
		return errors.New("with --kubeconfig-only nothing is done on the cluster: leave --target-kubeconfig, --target-context, --hosting-kubeconfig, --hosting-context, --resources, --add-resources and --allow-rbac-escalation away")
	}
	if err := checkNamespaces(o.namespaces); err != nil {
		return fmt.Errorf("--namespaces: %w", err)
	}
	if !slices.Contains(adoptions, o.adopt) {
		return fmt.Errorf("--adopt: %q is none of IfIdentical, Always and Never", o.adopt)
	}
	return cmp.Or(o.checkLifetime(), o.CheckTimeout())
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
		Namespaces: o.namespaces,
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
