package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// process is a running pod.
type process struct {
	address string
	space   string
	command *exec.Cmd
	// Closed when the process has ended.
	ended chan struct{}
}

// start runs the echo server of a pod in a network namespace of its own and waits until it accepts connections.
func (n *node) start(ctx context.Context, pod *corev1.Pod) (*process, error) {
	number := n.pods
	n.pods++
	address := fmt.Sprintf("10.64.%d.%d", number/250, number%250+2)
	space := fmt.Sprintf("pod%d", number)
	outer := fmt.Sprintf("veth%d", number)
	for _, line := range []string{
		"netns add " + space,
		"link add " + outer + " type veth peer name eth0 netns " + space,
		"link set " + outer + " up",
		"route add " + address + "/32 dev " + outer,
		"-n " + space + " link set lo up",
		"-n " + space + " addr add " + address + "/32 dev eth0",
		"-n " + space + " link set eth0 up",
		"-n " + space + " route add default dev eth0",
	} {
		if output, err := exec.CommandContext(ctx, "ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("ip %s: %w: %s", line, err, output)
		}
	}
	process := &process{address: address, space: space, ended: make(chan struct{})}
	environment, ports, err := n.environment(ctx, pod)
	if err != nil {
		return nil, err
	}
	if ports == nil {
		return process, nil
	}
	process.command = exec.Command("ip", "netns", "exec", space, n.echo)
	process.command.Env = environment
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer writer.Close()
	process.command.Stdout, process.command.Stderr = writer, writer
	process.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := process.command.Start(); err != nil {
		_ = reader.Close()
		return nil, err
	}
	output := n.logs.add(pod)
	go func() {
		output.read(reader)
		_ = reader.Close()
		_ = process.command.Wait()
		close(process.ended)
	}()
	return process, waitForPorts(ctx, process, ports)
}

// environment returns the variables of a pod and the ports on which its server listens; no ports for an image without a server.
func (n *node) environment(ctx context.Context, pod *corev1.Pod) ([]string, []string, error) {
	container := pod.Spec.Containers[0]
	if !strings.Contains(container.Image, "echo-basic") {
		return nil, nil, nil
	}
	folder := filepath.Join(n.directory, pod.Namespace+"."+pod.Name)
	mounts := map[string]string{}
	for _, mount := range container.VolumeMounts {
		for _, volume := range pod.Spec.Volumes {
			if volume.Name != mount.Name {
				continue
			}
			target := filepath.Join(folder, volume.Name)
			if err := n.writeVolume(ctx, pod.Namespace, volume, target); err != nil {
				return nil, nil, err
			}
			mounts[mount.MountPath] = target
		}
	}
	ports := []string{"3000"}
	environment := []string{}
	for _, variable := range container.Env {
		value := variable.Value
		if variable.ValueFrom != nil && variable.ValueFrom.FieldRef != nil {
			switch variable.ValueFrom.FieldRef.FieldPath {
			case "metadata.name":
				value = pod.Name
			case "metadata.namespace":
				value = pod.Namespace
			}
		}
		for path, target := range mounts {
			if strings.HasPrefix(value, path+"/") {
				value = target + strings.TrimPrefix(value, path)
			}
		}
		if variable.Name == "TLS_SERVER_CERT" {
			ports = append(ports, "8443")
		}
		environment = append(environment, variable.Name+"="+value)
	}
	return environment, ports, nil
}

// writeVolume writes the files of a Secret or a ConfigMap.
func (n *node) writeVolume(ctx context.Context, namespace string, volume corev1.Volume, folder string) error {
	files := map[string][]byte{}
	var items []corev1.KeyToPath
	switch {
	case volume.Secret != nil:
		secret, err := n.client.CoreV1().Secrets(namespace).Get(ctx, volume.Secret.SecretName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		files, items = secret.Data, volume.Secret.Items
	case volume.ConfigMap != nil:
		configMap, err := n.client.CoreV1().ConfigMaps(namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for name, text := range configMap.Data {
			files[name] = []byte(text)
		}
		items = volume.ConfigMap.Items
	}
	if len(items) > 0 {
		chosen := map[string][]byte{}
		for _, item := range items {
			chosen[item.Path] = files[item.Key]
		}
		files = chosen
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// waitForPorts returns when all ports of a pod accept connections.
func waitForPorts(ctx context.Context, process *process, ports []string) error {
	dialer := net.Dialer{Timeout: time.Second}
	deadline := time.Now().Add(20 * time.Second)
	for _, port := range ports {
		for {
			connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(process.address, port))
			if err == nil {
				_ = connection.Close()
				break
			}
			if time.Now().After(deadline) {
				return err
			}
			select {
			case <-process.ended:
				return fmt.Errorf("the server of pod %s has ended", process.address)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

// end ends the process of a pod and removes its network namespace.
func (p *process) end() {
	if p.command != nil {
		_ = p.command.Process.Signal(syscall.SIGTERM)
		<-p.ended
	}
	_ = exec.Command("ip", "netns", "delete", p.space).Run()
}
