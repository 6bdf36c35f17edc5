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
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
	"github.com/synchub-dev/synchub/provider/buildinfo"
)

// tunnelFlags are the flags of a registration by a tunnel.
type tunnelFlags struct {
	enabled                  bool
	namespace, image         string
	hubURL, hubAuthorityFile string
}

func (f *tunnelFlags) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVar(&f.enabled, "tunnel", false, "the cluster dials the hub: print the manifest of the tunnel for the cluster, and do nothing there")
	flags.StringVar(&f.image, "tunnel-image", defaultTunnelImage(), "image of the tunnel, with the host of the registry")
	f.addHubFlags(command)
}

// defaultTunnelImage returns the image of the tunnel in the version of the plugin.
func defaultTunnelImage() string { return buildinfo.Image("synchub-tunnel", cli.PluginVersion) }

// imageWarning returns a warning if the default image may be in no registry. It is empty if there is nothing to warn of.
func (f *tunnelFlags) imageWarning() string {
	if f.image != defaultTunnelImage() || buildinfo.IsRelease(cli.PluginVersion) {
		return ""
	}
	return "Warning: this plugin is no release, so a registry may not have the image " + f.image + ". Name an image that the cluster can pull with --tunnel-image."
}

func (f *tunnelFlags) addHubFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.namespace, "tunnel-namespace", registration.TunnelNamespace, "namespace of the tunnel in its cluster")
	flags.StringVar(&f.hubURL, "hub-url", "", "URL at which the cluster reaches the hub's port for tunnels, if it is not the one that the hub reports")
	flags.StringVar(&f.hubAuthorityFile, "hub-certificate-authority", "", "file with the certificate authority of --hub-url; without the file, the cluster trusts public authorities")
}

// check returns an error for a URL that no cluster could use.
func (f *tunnelFlags) check() error {
	if f.hubURL == "" {
		if f.hubAuthorityFile != "" {
			return errors.New("--hub-certificate-authority: give the URL with --hub-url too")
		}
		return nil
	}
	if hub, err := url.Parse(f.hubURL); err != nil || hub.Scheme != "https" || hub.Host == "" || hub.User != nil {
		return fmt.Errorf("--hub-url: %q is no URL such as https://synchub.example.com:8443", f.hubURL)
	}
	return nil
}

// authority reads the certificate authority of the hub; nil if none is given.
func (f *tunnelFlags) authority() ([]byte, error) {
	if f.hubAuthorityFile == "" {
		return nil, nil
	}
	content, err := os.ReadFile(f.hubAuthorityFile)
	if err == nil {
		_, err = cert.ParseCertsPEM(content)
	}
	if err != nil {
		return nil, fmt.Errorf("--hub-certificate-authority: %w", err)
	}
	return content, nil
}

func (o *registerOptions) checkTunnel() error {
	if o.hubKubeconfig != "" || o.target.Kubeconfig != "" || o.target.Context != "" {
		return errors.New("with --tunnel the command does nothing on the cluster: leave out --target-kubeconfig, --target-context and --kubeconfig-only, and apply the printed manifest")
	}
	if o.hosting.IsSet() {
		return errors.New("with --tunnel the PublishedResources of the hosting cluster are not read: leave out --hosting-kubeconfig and --hosting-context, and name the resources with --resources")
	}
	return errors.Join(o.checkManifestOutput("--tunnel"), o.tunnel.check())
}

// checkManifestOutput requires an output format for a manifest. what is the flag that prints it.
func (o *registerOptions) checkManifestOutput(what string) error {
	if *o.Output.OutputFormat != "yaml" && *o.Output.OutputFormat != "json" {
		return fmt.Errorf("with %s, --output=yaml or --output=json is needed: the manifest for the cluster is printed", what)
	}
	return nil
}

func (o *registerOptions) registerTunnel(ctx context.Context, name string) error {
	tunnel, err := o.planTunnel(name)
	if err != nil {
		return err
	}
	if warning := o.tunnel.imageWarning(); warning != "" {
		o.Note(warning)
	}
	waiting, cancel := context.WithTimeout(ctx, o.Limit())
	defer cancel()
	if o.DryRun != cli.DryRunNone {
		o.Note("A dry run prints no Secret, since nobody gets a token in it. Do not delete the one in the cluster.")
	}
	objects, err := tunnel.Register(waiting)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := o.Manifests.PrintObj(object, o.Out); err != nil {
			return err
		}
	}
	return nil
}

// rotateTunnel replaces the token of a tunnel, and prints the Secret for the cluster.
func (o *registerOptions) rotateTunnel(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget, revoke bool) error {
	if o.target.Kubeconfig != "" || o.target.Context != "" || o.Wait {
		return fmt.Errorf("the cluster of the SyncTarget %s dials the hub, so the command does nothing on the cluster: leave out --target-kubeconfig, --target-context and --wait, and apply the printed Secret", syncTarget.Name)
	}
	if err := o.checkManifestOutput("a tunnel"); err != nil {
		return err
	}
	tunnel, err := o.planTunnel(syncTarget.Name)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, o.Limit())
	defer cancel()
	secret, err := tunnel.Rotate(waiting, syncTarget, revoke)
	if err != nil || secret == nil {
		return err
	}
	if !revoke {
		o.Note("The hub takes the former token for another hour. Apply the Secret to the cluster before.")
	}
	return o.Manifests.PrintObj(secret, o.Out)
}

// planTunnel returns the planned registration. Only the manifest goes to standard output.
func (o *registerOptions) planTunnel(name string) (*registration.Tunnel, error) {
	plan, err := o.newRegistrar(name)
	if err != nil {
		return nil, err
	}
	plan.Connection = edgev2alpha1.ConnectionTunnel
	plan.Inventory.Report = func(change registration.Change) {
		kind, _ := apiutil.GVKForObject(change.Object, cli.Scheme)
		o.Note(fmt.Sprintf("%s %s %s", kind.Kind, change.Object.GetName(), change.Result))
	}
	authority, err := o.tunnel.authority()
	return &registration.Tunnel{Registrar: *plan, Namespace: o.tunnel.namespace, Image: o.tunnel.image, URL: o.tunnel.hubURL, CA: authority}, err
}
