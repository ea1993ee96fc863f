# Starts the server in Docker Desktop, with a OneBot client beside it / 用 Docker Desktop 启动服务和 OneBot 客户端：
#   powershell -ExecutionPolicy Bypass -File deploy\windows.ps1 napcat        (or snowluma, llbot, none)
# Without Docker Desktop it says what to install. Run it again after an upgrade.
# This file begins with a byte order mark: Windows PowerShell reads others in the code page of the machine.
param(
    [ValidateSet("napcat", "snowluma", "llbot", "none")] [string] $Client = "napcat",
    [ValidatePattern("^[0-9]*$")] [string] $QQ = ""
)

Set-Location -LiteralPath (Split-Path -Parent $PSScriptRoot)

if (-not (Get-Command docker -ErrorAction SilentlyContinue)) {
    Write-Host "Docker is not installed. In a terminal opened as administrator / 没有安装 Docker，请在管理员终端里执行："
    Write-Host "  wsl --install --no-distribution"
    Write-Host "  winget install --exact --id Docker.DockerDesktop"
    Write-Host "Restart Windows, start Docker Desktop once, and run this script again / 重启 Windows，打开一次 Docker Desktop，再运行本脚本"
    exit 1
}
docker info *> $null
if ($LASTEXITCODE -ne 0) {
    Write-Host "Docker Desktop does not run: start it, wait until it says 'Engine running', and run this script again / Docker Desktop 没有在运行：打开它，等到显示 Engine running，再运行本脚本"
    exit 1
}

# In .env, so that it holds for every later start too; of two lines the last one counts.
$kept = Select-String -Path .env -Pattern "^QQ=" -ErrorAction SilentlyContinue | Select-Object -Last 1
if ($QQ -and $kept.Line -ne "QQ=$QQ") {
    [IO.File]::AppendAllText("$($PWD.ProviderPath)\.env", "`nQQ=$QQ`n")
}
$profiles = @()
if ($Client -ne "none") { $profiles = @("--profile", $Client) }
# First the server until it is ready: its log then has the password, also where no client waits for it.
docker compose up -d --build --wait server
if ($LASTEXITCODE -eq 0) { docker compose @profiles up -d }
if ($LASTEXITCODE -ne 0) {
    docker compose @profiles logs --tail 40
    Write-Host "It did not start; the reason stands above. See docs/docker.md / 没有启动起来，原因见上，参见 docs/zh-CN/docker.md"
    exit 1
}
docker compose logs --no-log-prefix server
Write-Host "The password stands above after the first start / 第一次启动后，密码在上面"
$address = (docker compose port server 1234 | Select-Object -First 1) -replace "^0\.0\.0\.0", "127.0.0.1"
Start-Process "http://$address/admin/start/"
