package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
)

// download is what is to be beaten: a blob straight into a file, hashed on the way, as tools that fetch a blob do.
func download(ctx context.Context, j job) error {
	response, err := request(ctx, http.MethodGet, j.url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := os.MkdirAll(j.dir, 0o755); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(j.dir, "blob"))
	if err != nil {
		return err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(file, io.TeeReader(response.Body, hash)); err != nil {
		return err
	}
	if got, want := fmt.Sprintf("sha256:%x", hash.Sum(nil)), path.Base(j.url); got != want {
		return fmt.Errorf("downloaded %s instead of %s", got, want)
	}
	return file.Close()
}

// head is the least that a poll can be.
func head(ctx context.Context, url string) error {
	response, err := request(ctx, http.MethodHead, url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.Header.Get("Docker-Content-Digest") == "" {
		return fmt.Errorf("%s: answer names no digest", url)
	}
	return nil
}

func request(ctx context.Context, method, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", manifestType)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("%s %s: %s", method, url, response.Status)
	}
	return response, nil
}
