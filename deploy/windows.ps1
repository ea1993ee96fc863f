# Starts the server in Docker Desktop, with a OneBot client beside it:
#   powershell -ExecutionPolicy Bypass -File deploy\windows.ps1 napcat        (or snowluma, llbot, none)
# Without Docker Desktop it says what to install. Run it again after an upgrade.
param([ValidateSet("napcat", "snowluma", "llbot", "none")] [string] $Client = "napcat", [string] $QQ = "")

Set-Location (Split-Path -Parent $PSScriptRoot)

if (-not (Get-Command docker -ErrorAction SilentlyContinue)) {
    Write-Host "Docker is not installed. In a terminal opened as administrator:"
    Write-Host "  wsl --install --no-distribution"
    Write-Host "  winget install --exact --id Docker.DockerDesktop"
    Write-Host "Restart Windows, start Docker Desktop once, and run this script again."
    exit 1
}
docker info *> $null
if ($LASTEXITCODE -ne 0) {
    Write-Host "Docker Desktop does not run: start it, wait until it says 'Engine running', and run this script again."
    exit 1
}

if ($QQ) { $env:QQ = $QQ }
$profiles = @()
if ($Client -ne "none") { $profiles = @("--profile", $Client) }
docker compose @profiles up -d --build
if ($LASTEXITCODE -ne 0) {
    docker compose @profiles logs --tail 40
    Write-Host "It did not start; the reason stands above. See docs/docker.md."
    exit 1
}
docker compose logs --no-log-prefix server
Write-Host "The password stands above after the first start."
Start-Process "http://127.0.0.1:1234/admin/start/"
