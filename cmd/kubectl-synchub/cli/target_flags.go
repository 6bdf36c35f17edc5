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

package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
)

// TargetFlags select the target cluster and the kubeconfig of its administrator.
type TargetFlags struct{ Kubeconfig, Context string }

// AddFlags adds the flags to a command.
func (f *TargetFlags) AddFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.Kubeconfig, "target-kubeconfig", "", "kubeconfig of an administrator of the cluster; it is only used here")
	flags.StringVar(&f.Context, "target-context", "", "context of the cluster in --target-kubeconfig; the default is its current context")
}

// Reader returns a reader of the cluster.
func (f *TargetFlags) Reader() (*Reader, error) {
	admin, err := registration.LoadAdminConfig(f.Kubeconfig, f.Context)
	if err != nil {
		return nil, err
	}
	return NewTargetReader(admin.Config)
}

// Required returns an error if the user gave no kubeconfig.
func (f *TargetFlags) Required() error {
	if f.Kubeconfig == "" {
		return errors.New("--target-kubeconfig is needed: a kubeconfig of an administrator of the cluster")
	}
	return nil
}
